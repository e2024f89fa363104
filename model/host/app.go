package host

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// Datagrams is a loop around recvmsg on a UDP socket: the body of a UDP sink.
func Datagrams(s *UDPSock) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		for {
			t.ToKernel()
			c.Spend(model.StageSyscall)
			s.Recv(t)
			t.ToUser()
			c.Spend(model.StageAppRead)
		}
	}
}

// Stream is a loop around recv on a TCP socket, up to size bytes a call: the body
// of a bulk reader such as iperf3, which has a thread for each stream.
func Stream(s *TCPSock, size int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		for {
			t.ToKernel()
			c.Spend(model.StageSyscall)
			s.Recv(t, size)
			t.ToUser()
			c.Spend(model.StageAppRead)
		}
	}
}

// Hog burns CPU time in user mode for ever.
func Hog(t *cpu.Task) {
	t.ToUser()
	for {
		t.Core().Work(100 * sim.Millisecond)
		t.Core().Look()
	}
}
