package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the expected outputs of the scripts anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"napisim": main})
}

// TestScripts runs the command as its users do. Each script finds small.yaml, a scenario
// that is over in a moment.
func TestScripts(t *testing.T) {
	if slow && testing.Short() {
		t.Skip("the tests within one process find the races")
	}
	small, err := os.ReadFile("testdata/small.yaml")
	if err != nil {
		t.Fatal(err)
	}
	recordings, err := filepath.Abs("../../scenarios/recording/testdata/runs")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("RECORDINGS", recordings)
			return os.WriteFile(filepath.Join(env.WorkDir, "small.yaml"), small, 0o644)
		},
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":      code,
			"json":      jsonValue,
			"interrupt": interrupt,
		},
	})
}

// code runs napisim and checks its exit code: code 3 check x.yaml.
func code(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: code N args...")
	}
	got := 0
	err = ts.Exec("napisim", args[1:]...)
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// jsonValue checks the value at a path of a JSON document: json stdout runs.0.seed 1.
// Without a value the path has to exist; with ! in front it must not, or differ.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: [!] json file path [value]")
	}
	var v any
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	decoder.UseNumber()
	ts.Check(decoder.Decode(&v))
	value, ok := at(v, args[1])
	if len(args) == 3 {
		ok = ok && fmt.Sprint(value) == args[2]
	}
	if ok == neg {
		ts.Fatalf("%s is %v", args[1], value)
	}
}

// at follows a path of keys and indices; len is the length of a list.
func at(v any, path string) (any, bool) {
	for key := range strings.SplitSeq(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			if key == "len" {
				v = len(node)
				continue
			}
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			v = node[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// interrupt runs napisim, which is to create a directory named out, sends it interrupts
// and checks how it ends: interrupt 1 130 run ..., or interrupt 2 killed run ....
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	times, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: interrupt TIMES CODE|killed args...")
	}
	path, err := exec.LookPath("napisim")
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Start())
	// The directory is there once the command listens to signals and is about to run.
	for range 1000 {
		if _, err := os.Stat(ts.MkAbs("out")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range times {
		time.Sleep(100 * time.Millisecond)
		ts.Check(cmd.Process.Signal(os.Interrupt))
	}
	err = cmd.Wait()
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		ts.Fatalf("ended well: %v", err)
	}
	end := strconv.Itoa(failed.ExitCode())
	if status := failed.Sys().(syscall.WaitStatus); status.Signaled() {
		end = "killed"
	}
	if end != args[1] {
		ts.Fatalf("ended with %s, want %s", end, args[1])
	}
}
