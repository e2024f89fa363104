package emulated

import "napisim/model"

// frameQueue is a FIFO of frames that grows as needed and then allocates nothing.
type frameQueue struct {
	buf     []model.Frame
	head, n int
}

// push appends a copy of f.
func (q *frameQueue) push(f *model.Frame) {
	if q.n == len(q.buf) {
		grown := make([]model.Frame, max(16, 2*q.n))
		copied := copy(grown, q.buf[q.head:])
		copy(grown[copied:], q.buf[:q.head])
		q.buf, q.head = grown, 0
	}
	q.buf[(q.head+q.n)%len(q.buf)] = *f
	q.n++
}

// pop removes the oldest frame, which must be there. It is valid until the next push.
func (q *frameQueue) pop() *model.Frame {
	f := &q.buf[q.head]
	q.head = (q.head + 1) % len(q.buf)
	q.n--
	return f
}
