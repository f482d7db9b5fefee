package serve

// Events of a stream of OpenAI's responses.
type (
	responseEvent struct {
		eventHead
		Response *responseObject `json:"response"`
	}
	itemEvent struct { // output_item.added, .done
		eventHead
		Index int `json:"output_index"`
		Item  any `json:"item"`
	}
	partEvent struct { // content_part.added, .done, and their counterparts for summaries
		eventHead
		eventPlace
		Part any `json:"part"`
	}
	deltaEvent struct {
		eventHead
		eventPlace
		Delta    string         `json:"delta"`
		Logprobs []eventLogprob `json:"logprobs,omitzero"` // of text
	}
	textDone struct {
		eventHead
		eventPlace
		Text     string         `json:"text"`
		Logprobs []eventLogprob `json:"logprobs,omitzero"` // of text
	}
	argumentsDone struct {
		eventHead
		eventPlace
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	}
	inputDone struct {
		eventHead
		eventPlace
		Input string `json:"input"`
	}
	errorEvent struct {
		eventHead
		Code    *string `json:"code"`
		Message string  `json:"message"`
		Param   *string `json:"param"`
	}
)

// eventHead has the fields that all events have.
type eventHead struct {
	Type   string `json:"type"`
	Number int    `json:"sequence_number"`
}

func (h eventHead) name() string { return h.Type }

// eventPlace locates an event of a block's text.
type eventPlace struct {
	ItemID  string `json:"item_id"`
	Index   int    `json:"output_index"`
	Content *int   `json:"content_index,omitempty"`
	Summary *int   `json:"summary_index,omitempty"`
}

// eventLogprob is a log-probability of an event. It has no bytes.
type eventLogprob struct {
	Token       string     `json:"token"`
	Logprob     float32    `json:"logprob"`
	TopLogprobs []eventTop `json:"top_logprobs"`
}

type eventTop struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
}

// eventLogprobs returns the log-probabilities of a block of text, or nil for other blocks.
func (f *responseForm) eventLogprobs(b *block, probs []logprob) []eventLogprob {
	if b.kind != textBlock {
		return nil
	}
	list := []eventLogprob{}
	for _, l := range f.logprobs(probs) {
		one := eventLogprob{l.Token, l.Logprob, []eventTop{}}
		for _, top := range l.TopLogprobs {
			one.TopLogprobs = append(one.TopLogprobs, eventTop{top.Token, top.Logprob})
		}
		list = append(list, one)
	}
	return list
}

// head numbers an event.
func (f *responseForm) head(name string) eventHead {
	h := eventHead{name, f.sent}
	f.sent++
	return h
}

// failed is the event of an error.
func (f *responseForm) failed(e *apiError) event {
	return event{"error", errorEvent{f.head("error"), e.Code, e.Message, e.Param}}
}

// names returns the prefixes of the events of a block and of its part.
func (f *responseForm) names(b *block) (text, part string) {
	switch {
	case b.call.Custom != nil:
		return "response.custom_tool_call_input", ""
	case b.kind == callBlock:
		return "response.function_call_arguments", ""
	case b.kind == textBlock:
		return "response.output_text", "response.content_part"
	case f.summary:
		return "response.reasoning_summary_text", "response.reasoning_summary_part"
	}
	return "response.reasoning_text", "response.content_part"
}

// place returns the place of the events of a block's text.
func (f *responseForm) place(s *step) eventPlace {
	p := eventPlace{ItemID: f.itemID(s.at), Index: s.at}
	switch {
	case s.block.kind == callBlock:
	case s.block.kind == reasoningBlock && f.summary:
		p.Summary = new(int)
	default:
		p.Content = new(int)
	}
	return p
}

func (f *responseForm) events(p *piece, last bool) (list []event) {
	send := func(e interface{ name() string }) { list = append(list, event{e.name(), e}) }
	if p.first {
		send(responseEvent{f.head("response.created"), f.response(nil)})
		send(responseEvent{f.head("response.in_progress"), f.response(nil)})
	}
	for _, s := range f.add(p) {
		text, part := f.names(s.block)
		switch s.kind {
		case opens:
			send(itemEvent{f.head("response.output_item.added"), s.at, f.item(s.at, s.block, "in_progress")})
			if part != "" {
				send(partEvent{f.head(part + ".added"), f.place(&s), f.part(s.block, "")})
			}
		case adds:
			send(deltaEvent{f.head(text + ".delta"), f.place(&s), s.text, f.eventLogprobs(s.block, s.probs)})
		case closes:
			send(f.done(&s, text+".done"))
			if part != "" {
				send(partEvent{f.head(part + ".done"), f.place(&s), f.part(s.block, s.block.text)})
			}
			send(itemEvent{f.head("response.output_item.done"), s.at, f.item(s.at, s.block, f.status(s.at, p))})
		}
	}
	if last {
		r := f.response(p)
		send(responseEvent{f.head("response." + r.Status), r})
	}
	return list
}

// done returns the event of a block's whole text.
func (f *responseForm) done(s *step, name string) interface{ name() string } {
	b := s.block
	switch {
	case b.call.Custom != nil:
		return inputDone{f.head(name), f.place(s), b.text}
	case b.kind == callBlock:
		return argumentsDone{f.head(name), f.place(s), b.text, b.call.Function.Name}
	}
	return textDone{f.head(name), f.place(s), b.text, f.eventLogprobs(b, b.probs)}
}
