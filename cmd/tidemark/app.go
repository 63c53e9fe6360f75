package main

import (
	"fmt"
	"io"
	"slices"
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
			syncCommand(), promoteCommand(), stepDownCommand(), snapshotCommand(), compactCommand(), configCommand(), quarantineCommand(), leaseCommand(), doctorCommand(),
			demoCommand(), versionCommand(), demoWriterCommand(),
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
		prepare(command)
	}
	return app
}

// prepare gives a command, and those below it, the manners of all.
func prepare(command *cli.Command) {
	command.OnUsageError = usageMistake
	command.HideHelpCommand = true
	if len(command.Subcommands) == 0 {
		command.Before = strictArguments
		return
	}
	command.Action = func(c *cli.Context) error { return unknownCommand(c, command.Subcommands) }
	for _, sub := range command.Subcommands {
		prepare(sub)
	}
}

// help is another way to write -h.
func help(c *cli.Context) error {
	name := c.Args().Get(1)
	if name == "" {
		return cli.ShowAppHelp(c)
	}
	command := c.App.Command(name)
	switch {
	case command == nil:
		return usagef("unknown command %q; tidemark -h names all", name)
	case len(command.Subcommands) > 0:
		return c.App.RunContext(c.Context, slices.Concat([]string{c.App.Name}, c.Args().Tail(), []string{"-h"}))
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
		return usagef("no command given; commands are %s (%s -h explains them)", strings.Join(names, ", "), fullName(c))
	}
	name := c.Args().First()
	return usagef("unknown command %q%s; commands are %s", name, suggestion(name, names), strings.Join(names, ", "))
}

func usageMistake(c *cli.Context, err error, _ bool) error {
	message := err.Error()
	if name, ok := strings.CutPrefix(message, "flag provided but not defined: "); ok {
		message = fmt.Sprintf("unknown flag %s%s", name, suggestion(strings.TrimLeft(name, "-"), flagNames(c)))
	}
	return usagef("%s; see %s -h (the flags of a command go right after its name)", message, fullName(c))
}

// fullName is the command as it is typed.
func fullName(c *cli.Context) string {
	if c.Command == nil || c.Command.HelpName == "" {
		return c.App.Name
	}
	return c.Command.HelpName
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
			return usagef("flag %s stands after %q; flags go before the arguments: %s [flags] %s",
				arg, c.Args().First(), fullName(c), c.Command.ArgsUsage)
		}
	}
	return nil
}

// arguments returns the positional arguments if there are between least and most.
func arguments(c *cli.Context, least, most int) ([]string, error) {
	args := c.Args().Slice()
	if len(args) < least || len(args) > most {
		usage := strings.TrimSpace(fullName(c) + " [flags] " + c.Command.ArgsUsage)
		plural := "s"
		if len(args) == 1 {
			plural = ""
		}
		return nil, usagef("got %d argument%s; usage: %s", len(args), plural, usage)
	}
	return args, nil
}
