package link

import (
	"math/bits"

	"napisim/model"
	"napisim/sim"
)

// psPerByte is what a byte at one bit per second takes.
const psPerByte = 8 * uint64(sim.Second)

// moment is an exact instant: at, and frac/rate of a picosecond more.
type moment struct {
	at   sim.Time
	frac uint64 // below the rate
}

// up returns the first whole picosecond at which m has come.
func (m moment) up() sim.Time {
	if m.frac > 0 {
		return m.at + 1
	}
	return m.at
}

// line turns lengths into time.
type line struct {
	rate    uint64   // bit/s
	perByte sim.Time // of a byte, when that is a whole number of picoseconds; else 0
	delay   sim.Time
}

func newLine(c Config) line {
	l := line{rate: uint64(c.Rate), delay: c.Delay}
	if psPerByte%l.rate == 0 {
		l.perByte = sim.Time(psPerByte / l.rate)
	}
	return l
}

// after returns when a line that is free at the given moment is free again after a
// frame of that length, offered at that instant.
func (l *line) after(free moment, offered sim.Time, length int32) moment {
	if l.perByte == 0 {
		return l.afterFraction(free, offered, length)
	}
	// All usual speeds: 10M, 100M, 1G, 2.5G, 5G, 10G, 25G, 40G, 50G, 100G to 800G.
	return moment{at: max(free.at, offered) + sim.Time(model.WireBytes(length))*l.perByte}
}

// afterFraction is after for rates at which a byte takes no whole picoseconds.
func (l *line) afterFraction(free moment, offered sim.Time, length int32) moment {
	if offered > free.at {
		free = moment{at: offered}
	}
	hi, lo := bits.Mul64(uint64(model.WireBytes(length)), psPerByte)
	whole, frac := bits.Div64(hi, lo, l.rate)
	free.at += sim.Time(whole)
	if free.frac += frac; free.frac >= l.rate {
		free.frac -= l.rate
		free.at++
	}
	return free
}

// gap returns what the shortest frame takes, rounded down: no two frames end closer
// together.
func (l *line) gap() sim.Time {
	return l.after(moment{}, 0, 0).at
}
