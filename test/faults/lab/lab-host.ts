/** A host of the lab: the host of the model, with processes that start, answer and end as time passes. */

import type { ActiveJournal, Journal } from '../../../src/agent/journal.ts';
import type { ServiceFacts } from '../../../src/agent/service/host.ts';
import type { Step, StepOutcome } from '../../../src/agent/steps/step.ts';
import type { Clock } from '../../../src/util/clock.ts';
import {
  afterStep,
  factsOf,
  freshHost,
  type Host,
  lifeOf,
  type Qualities,
  UNSEEN,
} from '../../model/host.ts';

/** Milliseconds between two events of the host. An event is the start, an answer or the end of a process. */
const PACE_MS = 200;

export class LabHost {
  readonly name: string;
  readonly #clock: Clock;
  readonly #qualityOf: Qualities;
  readonly #onChange: (host: Host) => void;
  #host: Host;
  /** Versions of the airgap bundles that were placed. */
  readonly bundles = new Set<string>();
  #processes = 1;
  #startedAt = 0;
  #isMoving = false;

  constructor(
    name: string,
    file: string,
    clock: Clock,
    qualityOf: Qualities,
    onChange: (host: Host) => void,
  ) {
    this.name = name;
    this.#clock = clock;
    this.#qualityOf = qualityOf;
    this.#onChange = onChange;
    this.#host = freshHost(file, false);
  }

  get state(): Host {
    return this.#host;
  }

  /** Milliseconds since the start of the service's process. */
  get ageMs(): number {
    return this.#clock.monotonic() - this.#startedAt;
  }

  /** The facts that the agent observes. */
  observe(journal: Journal): ServiceFacts {
    const facts = factsOf(this.#host, journal, this.#qualityOf, () => ({}));
    return facts.at(-1) ?? {};
  }

  perform(step: Step, journal: ActiveJournal): StepOutcome {
    if (step.kind === 'fetch-bundle') this.bundles.add(journal.work.signal.command.version);
    const { host, outcome } = afterStep(step, this.#host, journal, this.#qualityOf);
    this.#set(host);
    return outcome;
  }

  #set(host: Host): void {
    const { service } = host;
    const isNew = service?.id === UNSEEN;
    if (isNew) this.#startedAt = this.#clock.monotonic();
    this.#host =
      service && isNew ? { ...host, service: { ...service, id: ++this.#processes } } : host;
    this.#onChange(this.#host);
    this.#live();
  }

  #live(): void {
    if (this.#isMoving || lifeOf(this.#host, this.#qualityOf).length === 0) return;
    this.#isMoving = true;
    this.#clock.schedule(PACE_MS, () => {
      this.#isMoving = false;
      const [next] = lifeOf(this.#host, this.#qualityOf);
      if (next) this.#set(next.host);
    });
  }
}
