package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/capture"
)

const configVariable = "TIDEMARK_CONFIG"

// explicitConfig tells whether -config stands on the command line; one from
// the environment gives way to arguments.
func explicitConfig(c *cli.Context) bool {
	path := c.String("config")
	return path != "" && path != os.Getenv(configVariable)
}

func configFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", Usage: "read `FILE`", EnvVars: []string{configVariable},
			DefaultText: defaultConfigPath},
		&cli.BoolFlag{Name: "no-expand-env", Usage: "leave $VAR and ${VAR} in the file as they are"},
	}
}

// loadConfig reads the file that -config names, or the default one.
func loadConfig(c *cli.Context) (Config, error) {
	path := c.String("config")
	if path == "" {
		path = defaultConfigPath
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return Config{}, usagef("nothing to work on: give %s, or -config FILE (%s does not exist)", c.Command.ArgsUsage, path)
		}
	}
	lookup := lookupVariable
	if c.Bool("no-expand-env") {
		lookup = nil
	}
	return readConfig(path, lookup)
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
	err := d.normalize(Config{})
	if err == nil {
		_, err = d.validate()
	}
	if err != nil {
		text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "."), "replica.url: ")
		return Database{}, usagef("%s: %s", withoutQuery(url), text)
	}
	return d, nil
}
