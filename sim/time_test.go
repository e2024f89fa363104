package sim

import "testing"

func TestTimeString(t *testing.T) {
	for at, want := range map[Time]string{
		0:                      "0ps",
		-1:                     "-1ps",
		999:                    "999ps",
		6720:                   "6.72ns",
		-1500:                  "-1.5ns",
		12 * Microsecond:       "12us",
		1500 * Microsecond:     "1.5ms",
		Second + 1:             "1s",
		Second + 10*Nanosecond: "1.00000001s",
		90 * Second:            "90s",
		Never:                  "never",
		250 * Millisecond:      "250ms",
		123456789 * Nanosecond: "123.456789ms",
	} {
		if got := at.String(); got != want {
			t.Errorf("%d is %q, want %q", int64(at), got, want)
		}
	}
}

func TestTimeSeconds(t *testing.T) {
	if got := (1500 * Millisecond).Seconds(); got != 1.5 {
		t.Errorf("1.5 s is %v", got)
	}
}
