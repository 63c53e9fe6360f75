// Command tidemark keeps SQLite databases safe in object storage: it replicates
// them while they are in use and restores them. The commands are thin, one file
// each; what they wire together is in the packages beside cmd.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	err := newApp(os.Stdout, os.Stderr).RunContext(context.Background(), os.Args)
	if message := describe(err); message != "" {
		fmt.Fprintln(os.Stderr, "tidemark: "+message)
	}
	os.Exit(exitCode(err))
}
