// Command napisim runs scenarios of network cards and the Linux receive path, and
// compares what changes when a kernel, a driver or a setting does.
//
// Results go to standard output and nothing else does; progress, warnings and errors go
// to standard error. A scenario is a name of the library or a file, - is standard input.
//
//	napisim list scenarios
//	napisim run quickstart
//	napisim run quickstart --set nics.eth0.coalesce.rx-usecs=50us --runs 3 --out out
//	napisim run quickstart --dry-run | napisim check -
//	napisim explain nics.eth0.coalesce.rx-usecs
//	napisim explain napi_schedule
//	napisim explain v6.4
//	napisim trace quickstart --from 20ms --to 21ms --points irq_handler_entry,napi_poll
//
// Two variants are compared over the same seeds, and so under the same traffic. The
// first value is the base:
//
//	napisim compare quickstart --runs 3 --vary kernel.behaviours.napi_schedule=always_raise,skip_in_net_rx_action
//
// What differs between two kernels, and which of the differences moves a metric, by how
// much and how surely:
//
//	napisim diff-kernels v6.3 v6.4
//	napisim bisect lan966x-napi-schedule --good v6.3 --bad v6.4 --metric goodput --set duration=3s --runs 3
//
// Results that were stored are compared in the same way; with --fail-on a script learns
// from the exit code whether something became worse:
//
//	napisim run quickstart --runs 3 -o json | napisim compare before=out/result.json after=- --fail-on 'goodput worse 2%'
//
// # Exit codes
//
//	0    fine
//	1    the work could not be done: a file cannot be read or written, or the program has a fault
//	2    the command line makes no sense
//	3    the scenario has faults, or a run of it would never end
//	4    reserved for expectations that a run does not meet
//	5    a comparison broke a rule of --fail-on
//	6    a bisection found no difference between the two kernels
//	70   a run broke an invariant of the model: a bug of napisim
//	130  interrupted; what was finished is shown
package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/term"
)

func main() {
	// The first interrupt ends the runs in an orderly way. From then on the signal means
	// what it means to any program: a second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(int(run(ctx, world{
		args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, terminal: terminal,
		pace: pace{patience: time.Second, line: 10 * time.Second, draw: time.Second / 5},
	})))
}

// terminal returns the width of the terminal that a stream is connected to; ok is false
// if it is none.
func terminal(stream any) (width int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return width, err == nil
}
