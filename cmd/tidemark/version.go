package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/mattn/go-sqlite3"
	"github.com/urfave/cli/v2"
)

// version is set when a release is linked, with -X main.version=v1.2.3.
var version string

// versions names what a binary is made of.
type versions struct {
	Tidemark string `json:"tidemark"`
	Go       string `json:"go"`
	SQLite   string `json:"sqlite"`
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the versions of tidemark, Go and the bundled SQLite",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}},
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			if c.Bool("json") {
				return printJSON(c.App.Writer, currentVersions())
			}
			return printVersions(c.App.Writer)
		},
	}
}

func printVersions(w io.Writer) error {
	v := currentVersions()
	_, err := fmt.Fprintf(w, "tidemark %s\n%s\nSQLite %s\n", v.Tidemark, v.Go, v.SQLite)
	return err
}

func currentVersions() versions {
	v := versions{Tidemark: version, Go: runtime.Version()}
	v.SQLite, _, _ = sqlite3.Version()
	if info, ok := debug.ReadBuildInfo(); ok && v.Tidemark == "" {
		v.Tidemark = info.Main.Version
	}
	v.Tidemark = cmp.Or(v.Tidemark, "devel")
	return v
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
