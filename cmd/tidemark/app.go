package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// newApp is the command line. It prints no error by itself and never exits.
func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:            "tidemark",
		Usage:           "keeps SQLite databases safe in object storage",
		Writer:          stdout,
		ErrWriter:       stderr,
		HideHelpCommand: true,
		HideVersion:     true,
		Commands: []*cli.Command{
			replicateCommand(), restoreCommand(), ltxCommand(), verifyCommand(), statusCommand(),
			syncCommand(), snapshotCommand(), compactCommand(), configCommand(), demoCommand(), versionCommand(), demoWriterCommand(),
		},
		OnUsageError:   usageMistake,
		ExitErrHandler: func(*cli.Context, error) {},
	}
	app.Flags = []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the versions"}}
	app.Action = func(c *cli.Context) error {
		switch {
		case c.Bool("version"):
			return printVersions(c.App.Writer)
		case c.Args().First() == "help":
			return help(c)
		}
		return unknownCommand(c, app.Commands)
	}
	for _, command := range app.Commands {
		command.OnUsageError = usageMistake
		command.HideHelpCommand = true
		command.Before = strictArguments
	}
	return app
}

// help is another way to write -h.
func help(c *cli.Context) error {
	name := c.Args().Get(1)
	if name == "" {
		return cli.ShowAppHelp(c)
	}
	if command := c.App.Command(name); command == nil {
		return usagef("unknown command %q; tidemark -h names all", name)
	}
	return cli.ShowCommandHelp(c, name)
}

func unknownCommand(c *cli.Context, commands []*cli.Command) error {
	var names []string
	for _, command := range commands {
		if !command.Hidden {
			names = append(names, command.Name)
		}
	}
	if c.Args().Len() == 0 {
		return usagef("no command given; commands are %s (tidemark -h explains them)", strings.Join(names, ", "))
	}
	name := c.Args().First()
	return usagef("unknown command %q%s; commands are %s", name, suggestion(name, names), strings.Join(names, ", "))
}

func usageMistake(c *cli.Context, err error, _ bool) error {
	message := err.Error()
	if name, ok := strings.CutPrefix(message, "flag provided but not defined: "); ok {
		message = fmt.Sprintf("unknown flag %s%s", name, suggestion(strings.TrimLeft(name, "-"), flagNames(c)))
	}
	where := "tidemark"
	if c.Command != nil && c.Command.Name != "tidemark" && c.Command.Name != "" {
		where = "tidemark " + c.Command.Name
	}
	return usagef("%s; see %s -h (the flags of a command go right after its name)", message, where)
}

func flagNames(c *cli.Context) []string {
	var names []string
	if c.Command == nil {
		return nil
	}
	for _, flag := range c.Command.Flags {
		names = append(names, flag.Names()...)
	}
	return names
}

// strictArguments refuses what the flag parser would take for an argument: it
// stops at the first one and lets flags behind it pass unread.
func strictArguments(c *cli.Context) error {
	for i, arg := range c.Args().Slice() {
		if i > 0 && len(arg) > 1 && arg[0] == '-' {
			return usagef("flag %s stands after %q; flags go before the arguments: tidemark %s [flags] %s",
				arg, c.Args().First(), c.Command.Name, c.Command.ArgsUsage)
		}
	}
	return nil
}

// arguments returns the positional arguments if there are between least and most.
func arguments(c *cli.Context, least, most int) ([]string, error) {
	args := c.Args().Slice()
	if len(args) < least || len(args) > most {
		usage := strings.TrimSpace("tidemark " + c.Command.Name + " [flags] " + c.Command.ArgsUsage)
		plural := "s"
		if len(args) == 1 {
			plural = ""
		}
		return nil, usagef("got %d argument%s; usage: %s", len(args), plural, usage)
	}
	return args, nil
}
