/** The connection of one process to the API server; calls fail as planned, and a dead process waits for ever. */
import { type Call, type Caller, queryText } from '../../../src/kube/client.ts';
import { StatusError, TransportError } from '../../../src/kube/status-error.ts';
import { sleep } from '../../../src/util/clock.ts';
import type { SkewedClock } from '../../support/clock/skewed-clock.ts';
import type { Fault, Tape } from './call-points.ts';

export interface FaultyCallerParts {
  readonly actor: string;
  readonly upstream: Caller;
  readonly tape: Tape;
  /** The clock of the process. It stops while the process is halted. */
  readonly clock: SkewedClock;
  /** False once the process is dead. */
  readonly isAlive: () => boolean;
  /** Ends the process at once. */
  readonly crash: () => void;
  /** Reports whether requests (`there`) or answers (`back`) are lost at present. */
  readonly isCut?: (direction: 'there' | 'back') => boolean;
}

const REFUSALS: Readonly<Partial<Record<Fault, [code: number, reason: string]>>> = {
  'error 409': [409, 'Conflict'],
  'error 410': [410, 'Expired'],
  'error 429': [429, 'TooManyRequests'],
  'error 500': [500, 'InternalError'],
};

/** The delay of a late watch, in milliseconds. */
const LAG_MS = 3_000;

export class FaultyCaller implements Caller {
  readonly #parts: FaultyCallerParts;
  /** The first answer to each read, by its path and query. */
  readonly #first = new Map<string, unknown>();

  constructor(parts: FaultyCallerParts) {
    this.#parts = parts;
  }

  async text(call: Call): Promise<{ status: number; body: string }> {
    return await this.#answer(call, async () => await this.#parts.upstream.text(call));
  }

  async json<T>(call: Call): Promise<T> {
    return await this.#answer(call, async () => await this.#parts.upstream.json<T>(call));
  }

  async *stream<T>(call: Call, idleMs: number): AsyncGenerator<T> {
    const { tape, actor, upstream, clock, isCut } = this.#parts;
    await this.#alive();
    const fault = tape.next(actor, call);
    await this.#before(fault, call);
    if (fault === 'lost answer') throw new TransportError('the stream broke before its first word');
    for await (const event of upstream.stream<T>(call, idleMs)) {
      if (fault === 'crash after the call') this.#parts.crash();
      await this.#alive();
      if (fault === 'old or late data') await sleep(clock, LAG_MS, call.abort);
      if (isCut?.('back') === true) throw new TransportError('the stream broke');
      yield event;
    }
  }

  close(): void {
    // Does nothing, because earlier requests still get their answers.
  }

  async #answer<T>(call: Call, ask: () => Promise<T>): Promise<T> {
    const { tape, actor, crash, isCut } = this.#parts;
    await this.#alive();
    const fault = tape.next(actor, call);
    await this.#before(fault, call);
    if (isCut?.('there') === true) return await this.#noAnswer(call);
    const asked = ask();
    // Waits until the server has answered. A refused call counts as done as well.
    await asked.catch(() => undefined);
    if (fault === 'crash after the call') crash();
    await this.#alive();
    if (isCut?.('back') === true) return await this.#noAnswer(call);
    const answer = await asked;
    if (fault === 'error 504') throw refusal(call, 504, 'Timeout');
    if (fault === 'lost answer')
      throw new TransportError('no answer came', { maybeApplied: call.method !== 'GET' });
    return this.#remembered(call, answer, fault);
  }

  /** Causes the faults that happen in place of the call. */
  async #before(fault: Fault | undefined, call: Call): Promise<void> {
    if (fault === 'crash before the call') this.#parts.crash();
    await this.#alive();
    const refused = fault && REFUSALS[fault];
    if (refused) throw refusal(call, ...refused);
  }

  /** If the connection is cut, waits until the deadline of the request, then fails. */
  async #noAnswer<T>({ deadlineMs, abort, method }: Call): Promise<T> {
    await sleep(this.#parts.clock, deadlineMs, abort);
    await this.#alive();
    throw new TransportError('no answer within the deadline', { maybeApplied: method !== 'GET' });
  }

  #remembered<T>(call: Call, answer: T, fault: Fault | undefined): T {
    if (call.method !== 'GET') return answer;
    const key = call.path + queryText(call.query ?? {});
    if (!this.#first.has(key)) this.#first.set(key, structuredClone(answer));
    return fault === 'old or late data' ? (structuredClone(this.#first.get(key)) as T) : answer;
  }

  async #alive(): Promise<void> {
    const { clock, isAlive } = this.#parts;
    if (isAlive()) await clock.running();
    if (!isAlive()) await new Promise<never>(() => undefined);
  }
}

function refusal({ path }: Call, code: number, reason: string): StatusError {
  const details = code === 429 ? { details: { retryAfterSeconds: 1 } } : {};
  return new StatusError({
    kind: 'Status',
    code,
    reason,
    message: `made up at ${path}`,
    ...details,
  });
}
