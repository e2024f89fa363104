package link_test

import (
	"errors"
	"strings"
	"testing"

	"napisim/model/link"
	"napisim/model/unit"
	"napisim/sim"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  link.Config
		want string // every fault, one per line
	}{
		{link.DefaultConfig(), ""},
		{link.Config{Rate: link.MinRate, Delay: sim.Second}, ""},
		{link.Config{Rate: link.MaxRate}, ""},
		{link.Config{}, "rate: 0bps is not between 100kbps and 10Tbps"},
		{link.Config{Rate: 11 * unit.Tbps, Delay: -1}, "rate: 11Tbps is not between 100kbps and 10Tbps\ndelay: -1ps is not between 0 and 1s"},
		{link.Config{Rate: unit.Gbps, Delay: sim.Second + 1}, "delay: 1s is not between 0 and 1s"},
	} {
		got := ""
		if err := errors.Join(c.cfg.Validate()...); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.cfg, got, c.want)
		}
	}
	if err := (link.Stats{Sent: 3, Lost: 1, Delivered: 1}).Check(); err == nil || !strings.Contains(err.Error(), "3 sent is not 1 lost + 1 delivered + 0 in flight") {
		t.Errorf("a lost frame is not noticed: %v", err)
	}
}
