//go:build !race

package leaser

const schedules = 100_000
