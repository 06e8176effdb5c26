/**
 * The processes of a run. Each process has its own clock and its own connection to the API server, and can be killed,
 * halted or cut off.
 */
import type { Caller, KubeClient } from '../../../src/kube/client.ts';
import { clientOver } from '../../../src/kube/transport/http-client.ts';
import type { Clock } from '../../../src/util/clock.ts';
import type { FakeClock } from '../../support/clock/fake-clock.ts';
import { SkewedClock } from '../../support/clock/skewed-clock.ts';
import type { Tape } from './call-points.ts';
import { FaultyCaller } from './faulty-caller.ts';

export type Direction = 'there' | 'back' | 'both';

/** Starts the work of a process. After the process is stopped, its work must have no effect. */
export type Start = (client: KubeClient, stop: AbortSignal, clock: Clock) => void;

export interface LabProcessesParts {
  readonly clock: FakeClock;
  readonly tape: Tape;
  /** Returns the connection of the actor to the server. */
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

  /** Registers a process without starting it. */
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

  /** Returns the clock of the machine on which the process runs. */
  clockOf(actor: string): Clock {
    return this.#processes.get(actor)?.clock ?? this.#parts.clock;
  }

  /** Kills the process, and restarts it a second later. */
  crash(actor: string): void {
    const process = this.#processes.get(actor);
    if (!process?.isAlive) return;
    kill(process);
    this.#parts.clock.schedule(RESPAWN_MS, () => this.#over.signal.aborted || this.#spawn(actor));
  }

  /** Moves the wall clock of the process's machine by this number of milliseconds. */
  jump(actor: string, ms: number): void {
    this.#processes.get(actor)?.clock.jump(ms);
  }

  /** Halts the process until `resume` is called. */
  halt(actor: string): void {
    this.#processes.get(actor)?.clock.halt();
  }

  resume(actor: string): void {
    this.#processes.get(actor)?.clock.resume();
  }

  /** Cuts the connection until `fix` is called. */
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
