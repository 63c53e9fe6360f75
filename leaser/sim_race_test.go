//go:build race

package leaser

// schedules are fewer where each takes ten times as long.
const schedules = 10_000
