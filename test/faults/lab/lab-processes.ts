/** The processes of a run: each with its clock and its connection to the API server, which is killed, halted or cut off. */
import type { Caller, KubeClient } from '../../../src/kube/client.ts';
import { clientOver } from '../../../src/kube/transport/http-client.ts';
import type { Clock } from '../../../src/util/clock.ts';
import type { FakeClock } from '../../support/clock/fake-clock.ts';
import { SkewedClock } from '../../support/clock/skewed-clock.ts';
import type { Tape } from './call-points.ts';
import { FaultyCaller } from './faulty-caller.ts';

export type Direction = 'there' | 'back' | 'both';

/** Begins the work of a process; later effects of a stopped one do not count. */
export type Start = (client: KubeClient, stop: AbortSignal, clock: Clock) => void;

export interface LabProcessesParts {
  readonly clock: FakeClock;
  readonly tape: Tape;
  /** The server as the actor reaches it. */
  readonly callerFor: (actor: string) => Caller;
}

interface Process {
  isAlive: boolean;
  readonly stop: AbortController;
  readonly clock: SkewedClock;
}

const RESPAWN_MS = 1_000;

export class LabProcesses {
  readonly #parts: LabProcessesParts;
  readonly #processes = new Map<string, Process>();
  readonly #cuts = new Map<string, Direction>();
  readonly #starts = new Map<string, Start>();
  readonly #over = new AbortController();

  constructor(parts: LabProcessesParts) {
    this.#parts = parts;
  }

  get actors(): readonly string[] {
    return [...this.#processes.keys()];
  }

  /** It does not run yet. */
  register(actor: string, start: Start): void {
    this.#starts.set(actor, start);
  }

  startAll(): void {
    for (const actor of this.#starts.keys()) this.#spawn(actor);
  }

  stopAll(): void {
    this.#over.abort();
    for (const process of this.#processes.values()) kill(process);
  }

  /** As its machine shows the time. */
  clockOf(actor: string): Clock {
    return this.#processes.get(actor)?.clock ?? this.#parts.clock;
  }

  /** The process dies, and starts again a second later. */
  crash(actor: string): void {
    const process = this.#processes.get(actor);
    if (!process?.isAlive) return;
    kill(process);
    this.#parts.clock.schedule(RESPAWN_MS, () => this.#over.signal.aborted || this.#spawn(actor));
  }

  /** Sets the wall clock of the process's machine by so many milliseconds. */
  jump(actor: string, ms: number): void {
    this.#processes.get(actor)?.clock.jump(ms);
  }

  /** Until it is resumed. */
  halt(actor: string): void {
    this.#processes.get(actor)?.clock.halt();
  }

  resume(actor: string): void {
    this.#processes.get(actor)?.clock.resume();
  }

  /** Until it is fixed. */
  cut(actor: string, direction: Direction): void {
    this.#cuts.set(actor, direction);
  }

  fix(actor: string): void {
    this.#cuts.delete(actor);
  }

  #spawn(actor: string): void {
    const { clock: base, tape, callerFor } = this.#parts;
    const clock = new SkewedClock(base);
    const process: Process = { isAlive: true, stop: new AbortController(), clock };
    this.#processes.set(actor, process);
    const caller = new FaultyCaller({
      actor,
      upstream: callerFor(actor),
      tape,
      clock,
      isAlive: () => process.isAlive,
      crash: () => this.crash(actor),
      isCut: (direction) => ['both', direction].includes(this.#cuts.get(actor) ?? ''),
    });
    this.#starts.get(actor)?.(clientOver(caller), process.stop.signal, clock);
  }
}

function kill(process: Process): void {
  process.isAlive = false;
  process.stop.abort();
}
