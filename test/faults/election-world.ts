/**
 * Simulates candidates of an election, controlled by a seed: skewed clocks, halted processes, partitions, and lost and
 * late requests. Checks what the candidates do.
 */
import { createElection, type Election } from '../../src/kube/election/election.ts';
import { guardedClient, type WriteGuard } from '../../src/kube/election/write-guard.ts';
import { type Lease, leases } from '../../src/kube/resources.ts';
import { TransportError } from '../../src/kube/status-error.ts';
import { sleep } from '../../src/util/clock.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';
import { SkewedClock } from '../support/clock/skewed-clock.ts';
import { LeaseServer, type Link, leaseClient } from './lease-server.ts';
import { seededRandom } from './random.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly candidates: number;
  /**
   * `prompt`: a request arrives within a second or never. `patient`: a request may take long to arrive, but it is lost
   * when its connection closes; processes are not halted, because a halted process can't close a connection. `late`: a
   * request may arrive at any time.
   */
  readonly network: 'prompt' | 'patient' | 'late';
  /**
   * `version`: each write names the resourceVersion on which it is based, as all writes of Refit to shared objects do.
   */
  readonly precondition: 'version' | 'none';
  /**
   * Replaces the write guard of the candidates. A test uses a faulty write guard to show that the checks detect what
   * the real write guard prevents.
   */
  readonly writeGuard?: (election: Election) => WriteGuard;
}

/** One write as the server accepted it. */
interface Accepted {
  readonly holder: string;
  readonly term: number;
}

export interface Verdict {
  /** Empty if no violation was found. */
  readonly violations: string[];
  readonly accepted: readonly Accepted[];
  /** The number of terms that began. */
  readonly terms: number;
}

const PLACE = { namespace: 'ns', name: 'leader' };
const TIMES = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
/**
 * The maximum difference between the rate of a clock and real time. The write guard leaves a tenth of the lease
 * duration unused. This drift is a part of that tenth, and far more than the drift of any real oscillator.
 */
const MAX_DRIFT = 0.01;
const MINUTES = 20;
/**
 * The maximum duration of a partition or a halt, in milliseconds. Some end before the lease expires, and some end long
 * after.
 */
const MAX_TROUBLE_MS = 40_000;
/** The number of writers in each candidate, and the milliseconds that a writer pauses between two writes. */
const WRITERS = { count: 2, pauseMs: 200 };

interface Candidate {
  readonly name: string;
  readonly clock: SkewedClock;
  readonly election: Election;
  partitioned: boolean;
  stop: AbortController;
}

/** Runs one seed to its end; the same seed gives the same verdict. */
export async function runElectionWorld(options: WorldOptions): Promise<Verdict> {
  const world = new World(options);
  return await world.run();
}

class World {
  readonly #options: WorldOptions;
  readonly #random: () => number;
  readonly #clock = new FakeClock();
  readonly #server = new LeaseServer();
  /** The object to which leaders write. Each write contains the holder and the number of the term. */
  readonly #register = new LeaseServer();
  readonly #accepted: Accepted[] = [];
  readonly #violations: string[] = [];
  readonly #candidates: Candidate[] = [];
  readonly #ended: Promise<void>[] = [];
  #terms = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#register.create({ metadata: { name: 'register' } });
    if (options.precondition === 'none') this.#register.ignoreVersions();
  }

  async run(): Promise<Verdict> {
    for (let index = 0; index < this.#options.candidates; index++) this.#join(`c${index}`);
    for (let tick = 0; tick < MINUTES * 60; tick++) {
      if (this.#random() < 0.05) await this.#disturb();
      await this.#clock.advance(1_000);
      this.#judgeTerms();
    }
    for (const candidate of this.#candidates) {
      candidate.partitioned = false;
      candidate.clock.resume();
      candidate.stop.abort();
    }
    await this.#clock.runUntil(Promise.all(this.#ended));
    return { violations: this.#violations, accepted: this.#accepted, terms: this.#terms };
  }

  #join(name: string): void {
    const skew = {
      rate: 1 + (this.#random() * 2 - 1) * MAX_DRIFT,
      offset: (this.#random() * 2 - 1) * 1e9,
    };
    const clock = new SkewedClock(this.#clock, skew);
    const link = this.#linkOf(() => candidate);
    const random = seededRandom(Math.floor(this.#random() * 2 ** 32));
    const client = leaseClient(this.#server, link);
    const election = createElection({ client, ...PLACE, ...TIMES, identity: name, clock, random });
    const candidate: Candidate = {
      name,
      clock,
      election,
      partitioned: false,
      stop: new AbortController(),
    };
    election.onChange((term) => {
      if (term) this.#terms++;
    });
    this.#candidates.push(candidate);
    const { signal: abort } = candidate.stop;
    this.#ended.push(election.run(abort));
    for (let index = 0; index < WRITERS.count; index++)
      this.#ended.push(this.#work(candidate, link, abort));
  }

  /** Writes as fast as the write guard and the network allow. */
  async #work({ name, clock, election }: Candidate, link: Link, abort: AbortSignal): Promise<void> {
    const writeGuard = this.#options.writeGuard?.(election) ?? election;
    const judging: Link = async (apply, options, mutating) =>
      await link(() => (mutating ? this.#judged(apply) : apply()), options, mutating);
    const client = guardedClient(leaseClient(this.#register, judging), writeGuard);
    while (!abort.aborted) {
      await sleep(clock, WRITERS.pauseMs, abort).catch(() => undefined);
      const seen = await client
        .get(leases, 'register', { deadlineMs: 3_000 })
        .catch(() => undefined);
      const term = writeGuard.term();
      if (!seen || !term) continue;
      const note = { holderIdentity: name, leaseTransitions: term.number };
      await client.replace(leases, { ...seen, spec: note }).catch(() => undefined);
    }
  }

  /** Judges a write at the moment at which the server accepts it. */
  #judged<T>(apply: () => T): T {
    const result = apply();
    const { holderIdentity: holder = '', leaseTransitions: term = -1 } =
      (result as Lease).spec ?? {};
    const newest = this.#accepted.reduce((most, { term: each }) => Math.max(most, each), -1);
    if (term < newest)
      this.#violations.push(`${holder} wrote in term ${term} after term ${newest}`);
    const rival = this.#accepted.find((each) => each.term === term && each.holder !== holder);
    if (rival)
      this.#violations.push(`${holder} and ${rival.holder} wrote in the same term ${term}`);
    this.#accepted.push({ holder, term });
    return result;
  }

  /** Checks that no two candidates hold the lease at the same moment, even if one of them is halted. */
  #judgeTerms(): void {
    const holders = this.#candidates
      .filter(({ election }) => election.term())
      .map(({ name }) => name);
    if (holders.length > 1)
      this.#violations.push(`${holders.join(' and ')} lead at ${this.#clock.monotonic()} ms`);
  }

  async #disturb(): Promise<void> {
    const candidate = this.#candidates[Math.floor(this.#random() * this.#candidates.length)];
    if (!candidate) return;
    const chance = this.#random();
    const forMs = this.#random() * MAX_TROUBLE_MS;
    const mayHalt = this.#options.network !== 'patient';
    if (chance < (mayHalt ? 0.45 : 0.9)) {
      candidate.partitioned = true;
      this.#clock.schedule(forMs, () => {
        candidate.partitioned = false;
      });
    } else if (chance < 0.9) {
      candidate.clock.halt();
      this.#clock.schedule(forMs, () => candidate.clock.resume());
    } else await this.#replace(candidate);
  }

  /** Stops a candidate gracefully and starts a new process under a new name, as a restart would. */
  async #replace(candidate: Candidate): Promise<void> {
    candidate.clock.resume();
    candidate.stop.abort();
    this.#candidates.splice(this.#candidates.indexOf(candidate), 1);
    this.#join(`${candidate.name}'`);
    await this.#clock.advance(0);
  }

  /** The network of one candidate. Request and answer both take time, and each of them may get lost. */
  #linkOf(owner: () => Candidate): Link {
    return async (apply, { deadlineMs = 30_000 }, mutating) => {
      const { clock } = owner();
      const there = this.#latency();
      const back = this.#latency();
      const lost = this.#random();
      const outcome = Promise.withResolvers<() => ReturnType<typeof apply>>();
      let waiting = true;
      const settle = (give: () => ReturnType<typeof apply>): void => {
        waiting = false;
        stopDeadline();
        outcome.resolve(give);
      };
      const stopDeadline = clock.schedule(deadlineMs, () =>
        settle(() => {
          throw new TransportError('no answer', { maybeApplied: mutating });
        }),
      );
      this.#clock.schedule(there, () => {
        const keeps = this.#options.network !== 'patient' || waiting;
        if (owner().partitioned || lost < 0.05 || !keeps) return;
        const answer = attempt(apply);
        this.#clock.schedule(back, () => {
          if (!owner().partitioned && lost > 0.1 && waiting)
            void clock.running().then(() => waiting && settle(answer));
        });
      });
      const give = await outcome.promise;
      return give();
    };
  }

  /** Milliseconds: mostly short; sometimes longer than any deadline, except in the prompt network. */
  #latency(): number {
    const chance = this.#random();
    if (this.#options.network === 'prompt') return chance * 1_000;
    if (chance < 0.9) return chance * 50;
    return this.#random() * (chance < 0.95 ? 3_000 : 60_000);
  }
}

function attempt<T>(apply: () => T): () => T {
  try {
    const result = apply();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
