package exit_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"napisim/cmd/napisim/exit"
)

func TestOf(t *testing.T) {
	for _, test := range []struct {
		err  error
		want exit.Code
	}{
		{nil, exit.OK},
		{fs.ErrNotExist, exit.Failed},
		{exit.With(exit.Usage, errors.New("what?")), exit.Usage},
		{fmt.Errorf("in a wrapper: %w", exit.With(exit.Broken, fs.ErrClosed)), exit.Broken},
	} {
		if got := exit.Of(test.err); got != test.want {
			t.Errorf("Of(%v) = %d, want %d", test.err, got, test.want)
		}
	}
	if err := exit.With(exit.Broken, fs.ErrClosed); !errors.Is(err, fs.ErrClosed) || err.Error() != fs.ErrClosed.Error() {
		t.Errorf("the code hides the error: %v", err)
	}
}
