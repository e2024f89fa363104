// Package exit holds the exit codes of napisim, which scripts may rely on.
package exit

import "errors"

// A Code is what the process tells the shell.
type Code int

// The exit codes.
const (
	// OK says that everything went well.
	OK Code = 0
	// Failed says that the work could not be done: a file that cannot be read or
	// written, or a fault of the program itself.
	Failed Code = 1
	// Usage says that the command line makes no sense.
	Usage Code = 2
	// Invalid says that a scenario was read and cannot be run: it has faults, or a run
	// of it would never end.
	Invalid Code = 3
	// Expectation says that a run did not meet what its scenario expects. Reserved:
	// scenarios cannot state expectations yet.
	Expectation Code = 4
	// Regression says that a comparison broke a rule of --fail-on.
	Regression Code = 5
	// NoChange says that a bisection found nothing to explain: the metric does not differ
	// between the two kernels.
	NoChange Code = 6
	// Broken says that a run broke an invariant: a bug of the model, not of its user.
	Broken Code = 70
	// Interrupted says that the user ended the work. What was finished is shown.
	Interrupted Code = 130
)

// An Error is an error that knows the exit code it amounts to.
type Error struct {
	Code Code
	Err  error
}

// Error returns the text of the error; the code is for the shell alone.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// With gives an error the code that the process shall exit with.
func With(code Code, err error) error { return &Error{Code: code, Err: err} }

// Of returns the code of an error: the one it was given, Failed for any other error,
// OK for none.
func Of(err error) Code {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Failed
}
