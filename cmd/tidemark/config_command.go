package main

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/kballard/go-shellquote"
	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/s3"
)

// masked stands in for a secret that is set.
const masked = "********"

func configCommand() *cli.Command {
	return &cli.Command{
		Name:      "config",
		Usage:     "print the settings in effect, secrets masked",
		ArgsUsage: "-config FILE",
		Flags: append(configFlags(),
			&cli.BoolFlag{Name: "check", Usage: "print nothing but what is wrong"},
			&cli.BoolFlag{Name: "explain", Usage: "print an estimate of the requests of a month instead of the settings"},
			&cli.Int64Flag{Name: "commits", Usage: "estimate with `N` commits a day in each database, with -explain; 0: as many as can be"},
			&cli.BoolFlag{Name: "json", Usage: "print the estimate as JSON, with -explain"},
		),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			if err := checkExplainFlags(c); err != nil {
				return err
			}
			cfg, err := loadConfig(c)
			if err != nil {
				return err
			}
			if c.Bool("check") {
				return cfg.HA.findRoleFile()
			}
			if c.Bool("explain") {
				return printExplanation(c, cfg)
			}
			text, err := yaml.Marshal(maskSecrets(cfg))
			if err != nil {
				return fmt.Errorf("print configuration: %w", err)
			}
			_, err = c.App.Writer.Write(text)
			return err
		},
	}
}

func checkExplainFlags(c *cli.Context) error {
	switch {
	case c.Bool("explain") && c.Bool("check"):
		return usagef("-explain and -check exclude each other")
	case !c.Bool("explain") && (c.IsSet("commits") || c.Bool("json")):
		return usagef("-commits and -json need -explain")
	case c.Int64("commits") < 0:
		return usagef("-commits %d: use 0 or more", c.Int64("commits"))
	}
	return nil
}

func printExplanation(c *cli.Context, cfg Config) error {
	x, err := explain(cfg, c.Int64("commits"))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, x)
	}
	return x.print(c.App.Writer)
}

// maskSecrets returns the settings fit to be shown.
func maskSecrets(c Config) Config {
	mask(&c.S3)
	if args, err := c.command(); err == nil && len(args) > 1 {
		c.Exec = shellquote.Join(args[0]) + " " + masked
	}
	for _, line := range []*string{&c.HA.OnPromote, &c.HA.OnDemote} {
		if args, err := commandLine("", *line); err == nil && len(args) > 1 {
			*line = shellquote.Join(args[0]) + " " + masked
		}
	}
	c.HA.Lease.URL = withoutQuery(c.HA.Lease.URL)
	c.Databases = slices.Clone(c.Databases)
	for i := range c.Databases {
		mask(&c.Databases[i].Replica.S3)
	}
	return c
}

func mask(c *s3.Config) {
	for _, secret := range []*string{&c.AccessKeyID, &c.SecretAccessKey, &c.SessionToken} {
		if *secret != "" {
			*secret = masked
		}
	}
}
