package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/capture"
)

const configVariable = "TIDEMARK_CONFIG"

// explicitConfig tells whether -config stands on the command line; a file from
// the environment gives way to arguments.
func explicitConfig(c *cli.Context) bool { return c.String("config") != "" }

func configFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", Usage: "read `FILE`; without it that of $" + configVariable,
			DefaultText: defaultConfigPath},
		&cli.BoolFlag{Name: "no-expand-env", Usage: "leave $VAR and ${VAR} in the file as they are"},
	}
}

// configPath is the file to read; there may be none under the default path.
func configPath(c *cli.Context) (path string, there bool) {
	if path = cmp.Or(c.String("config"), os.Getenv(configVariable)); path != "" {
		return path, true
	}
	return defaultConfigPath, exists(defaultConfigPath)
}

// loadConfig reads the file that -config or the environment names, or the
// default one. What is wrong with it is a usage error: starting again is no
// cure.
func loadConfig(c *cli.Context) (Config, error) {
	path, there := configPath(c)
	if !there {
		return Config{}, usagef("nothing to work on: give %s, or -config FILE (%s does not exist)", c.Command.ArgsUsage, path)
	}
	lookup := lookupVariable
	if c.Bool("no-expand-env") {
		lookup = nil
	}
	cfg, err := readConfig(path, lookup)
	if err != nil {
		return Config{}, usagef("%v", err)
	}
	return cfg, nil
}

// singleConfig is the configuration of one database without a file.
func singleConfig(path, url string) (Config, error) {
	d, err := singleDatabase(path, url)
	if err != nil {
		return Config{}, err
	}
	cfg := DefaultConfig()
	cfg.Databases = []Database{d}
	return cfg, cfg.Validate()
}

// singleDatabase is what the arguments DB and URL say.
func singleDatabase(path, url string) (Database, error) {
	if path == "" || url == "" {
		return Database{}, usagef("an argument is empty")
	}
	d := Database{Path: path, Capture: capture.DefaultConfig(), Replica: Replica{URL: url}}
	err := d.normalize(DefaultConfig())
	if err == nil {
		_, err = d.validate()
	}
	if err != nil {
		text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "."), "replica.url: ")
		return Database{}, usagef("%s: %s", withoutQuery(url), text)
	}
	return d, nil
}
