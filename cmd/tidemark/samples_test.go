package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"
)

// accepts runs a command line up to the point where the command would begin.
func accepts(args []string) error {
	app := newApp(io.Discard, io.Discard)
	for _, command := range app.Commands {
		command.Action = func(c *cli.Context) error {
			_, err := arguments(c, 0, 2)
			return err
		}
	}
	return app.Run(append([]string{"tidemark"}, args...))
}

type container struct {
	Name  string   `yaml:"name"`
	Image string   `yaml:"image"`
	Args  []string `yaml:"args"`
}

func TestKubernetesSampleUsesFlagsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../etc/kubernetes.yml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers []container `yaml:"initContainers"`
				} `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	containers := manifest.Spec.Template.Spec.InitContainers
	if len(containers) != 2 {
		t.Fatalf("got %d containers of ours, want 2", len(containers))
	}
	for _, c := range containers {
		if err := accepts(c.Args); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func TestUnitSampleUsesFlagsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../etc/tidemark.service")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/tidemark (.+)$`).FindSubmatch(text)
	if match == nil {
		t.Fatal("no ExecStart")
	}
	if err := accepts(strings.Fields(string(match[1]))); err != nil {
		t.Error(err)
	}
}

func TestUnitSampleStartsAgainOnlyWhereThatMayHelp(t *testing.T) {
	text, err := os.ReadFile("../../etc/tidemark.service")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("\nRestartPreventExitStatus=%d %d\n", exitUsage, exitFenced)
	if !strings.Contains(string(text), want) {
		t.Errorf("the unit has no line %q", want)
	}
}

// Indented command lines of the README that are no synopsis.
func TestReadmeUsesFlagsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^    tidemark ((?:replicate|restore) -?[^\[\n]*)$`).FindAllSubmatch(text, -1)
	if len(lines) < 3 {
		t.Fatalf("found %d command lines", len(lines))
	}
	for _, line := range lines {
		args := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(string(line[1]), -1)
		if err := accepts(args); err != nil {
			t.Errorf("%s: %v", line[1], err)
		}
	}
}
