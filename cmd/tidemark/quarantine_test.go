package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/quarantine"
)

// setAsideTool sets the databases of scripts aside:
//
//	setaside DB FIRST LAST
func setAsideTool() {
	if err := runSetAsideTool(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "setaside:", err)
		os.Exit(1)
	}
}

func runSetAsideTool(args []string) error {
	if len(args) != 3 {
		return errors.New("want DB FIRST LAST")
	}
	first, err := strconv.ParseUint(args[1], 10, 64)
	last, err2 := strconv.ParseUint(args[2], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	state := capture.StateDir(args[0])
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	m := quarantine.Manifest{Node: "node-a", First: ltx.TXID(first), Last: ltx.TXID(last)}
	e, err := quarantine.Set(context.Background(), quarantine.Dir(state), quarantine.Input{Database: args[0], Manifest: m})
	if err == nil {
		fmt.Println(e.ID)
	}
	return err
}
