/** The states of a node during one turn of its agent: one after each effect, in order. */
import type { placeToFetch } from '../../src/agent/download/fetch-ahead.ts';
import type { Journal } from '../../src/agent/journal.ts';
import type { ServiceFacts } from '../../src/agent/service/host.ts';
import type { BesideK0s } from '../../src/agent/step-input.ts';
import type { Step, StepOutcome } from '../../src/agent/steps/step.ts';
import { cordonOwner, withCordon, withoutCordon } from '../../src/drain/cordon-marks.ts';
import type { KubeObject, Node } from '../../src/kube/resources.ts';
import { StatusError, TransportError } from '../../src/kube/status-error.ts';
import { type AgentReport, decodeSignal } from '../../src/signal/annotations.ts';
import { REPORT_ANNOTATION } from '../../src/signal/names.ts';
import { takeTurn } from './agent-turn.ts';
import type { Configuration } from './cluster.ts';
import { type afterStep, type File, type Qualities, runs } from './host.ts';
import { contentOf, type NodeState, objectAt, written } from './node-state.ts';
import type { Numbering } from './numbering.ts';
import type { ownAgentFacts } from './their-agent.ts';

export interface NodeRules {
  readonly contents: Numbering<KubeObject>;
  readonly qualityOf: Qualities;
  /** Reports whether the file belongs to the last command. */
  readonly isLast: (file: File) => boolean;
  readonly cordoner: Configuration['cordoner'];
  /** True where the objects of such nodes are Nodes, which can be cordoned. */
  readonly isNode: boolean;
  /** See Configuration. */
  readonly othersCordon: boolean;
  /** See Configuration. No move may cost more faults than this number. */
  readonly faults: number;
  /** True where pods that were evicted may come back to a node that is uncordoned. */
  readonly podsReturn: boolean;
  /** See Configuration. */
  readonly fetchesAhead: boolean;
  /** See Configuration. */
  readonly theirs: Configuration['theirs'];
  /** See Configuration. */
  readonly ownAgent: Configuration['ownAgent'];
  /** True if the object of the node shows the running version, at some time after the service is up. */
  readonly tellsVersion: boolean;
  /** See Configuration. */
  readonly power: Configuration['power'];
  /** The effect of a step on the host. It is a parameter, so that a mistake can be planted. */
  readonly afterStep: typeof afterStep;
  /** What the agent finds out about k0s's own agent. It is a parameter, so that a mistake can be planted. */
  readonly ownAgentFacts: typeof ownAgentFacts;
  /** The check of the prefetcher; a parameter for the same reason. */
  readonly placeToFetch: typeof placeToFetch;
}

/** What the agent observes at the start of its turn. */
export interface Look {
  /** The resourceVersion that it saw last; undefined where it has seen none yet. */
  readonly view: number | undefined;
  readonly facts: ServiceFacts;
  /** Milliseconds since the restart that it waits for. */
  readonly elapsedMs: number;
}

/** The results of the effects of the turn outside the journal, where they differ from the usual results. */
export interface Answers {
  readonly outcome?: StepOutcome;
  /** True if a step that fails has not done its work. A step may also fail after it has done its work. */
  readonly isUndone?: boolean;
  readonly isAnswerLost?: boolean;
}

export interface Trail {
  /** Empty where the agent does nothing. */
  readonly steps: readonly { readonly label: string; readonly to: NodeState }[];
  /** The kinds of answers that can change the course of this turn. */
  readonly asked: ReadonlySet<keyof Answers>;
}

export async function trailOf(
  node: NodeState,
  rules: NodeRules,
  look: Look,
  answers: Answers,
): Promise<Trail> {
  const turn = new RecordedTurn(node, rules, look, answers);
  await takeTurn(turn);
  return { steps: turn.trail, asked: turn.asked };
}

class RecordedTurn {
  readonly trail: { label: string; to: NodeState }[] = [];
  readonly asked = new Set<keyof Answers>();
  readonly journal: Journal;
  readonly object: KubeObject | undefined;
  readonly facts: ServiceFacts;
  readonly elapsedMs: number;
  readonly cordoner: Configuration['cordoner'];
  readonly hasCordon: boolean;
  readonly beside: BesideK0s;
  readonly #rules: NodeRules;
  readonly #answers: Answers;
  #node: NodeState;

  constructor(
    node: NodeState,
    rules: NodeRules,
    { view, facts, elapsedMs }: Look,
    answers: Answers,
  ) {
    // From now on, OwnObject ignores all versions that are older than the version that it has already read.
    this.#node = view === undefined ? node : { ...node, known: true, floor: view };
    this.#rules = rules;
    this.beside = rules.theirs === 'off' ? 'replace' : 'observe';
    this.#answers = answers;
    this.journal = node.journal;
    this.object = view === undefined ? undefined : objectAt(rules.contents, node.versions, view);
    this.facts = facts;
    this.elapsedMs = elapsedMs;
    this.cordoner = rules.cordoner;
    this.hasCordon = cordonOwner(objectAt(rules.contents, node.versions)) !== undefined;
  }

  /** True also after a crash of the agent, which forgets what it fetched. The file is still on the disk. */
  holds(version: string): boolean {
    const { staged } = this.#node.host;
    return this.#rules.fetchesAhead && staged === version && runs(staged, this.#rules.qualityOf);
  }

  fetchAhead(version: string | undefined): void {
    const { host } = this.#node;
    const { fetchesAhead, placeToFetch } = this.#rules;
    if (!fetchesAhead || host.staged === version) return;
    if (version !== undefined && placeToFetch(this.facts, this.beside) === undefined) return;
    const label =
      version === undefined ? 'discards what it downloaded' : 'downloads before its turn';
    this.#reach(label, { ...this.#node, host: { ...host, staged: version } });
  }

  isLeft(created: string): boolean {
    return this.#node.left.includes(created);
  }

  leave(created: string): void {
    // After a crash the agent may leave the signal again. It is recorded only once.
    this.#reach('leaves the signal', {
      ...this.#node,
      left: [...new Set([...this.#node.left, created])],
    });
  }

  save(journal: Journal): void {
    this.#reach(`notes "${journal.phase}"`, { ...this.#node, journal });
  }

  perform(step: Step): StepOutcome {
    const { journal, host } = this.#node;
    if (journal.phase === 'idle') throw new Error('an agent without work does nothing to its host');
    const { planId, created } = journal.work.signal;
    if (step.kind === 'cordon-and-drain')
      this.#change('cordons its node', (node) => withCordon(node, `${planId}/${created}`));
    const after = this.#rules.afterStep(step, host, journal, this.#rules.qualityOf);
    if (step.kind !== 'begin') this.asked.add('outcome');
    const { outcome = after.outcome, isUndone = false } =
      step.kind === 'begin' ? {} : this.#answers;
    // An operating system signal either reaches a process or does not reach it. So the steps `restart` and `kill` have
    // no partial results.
    const isDone = outcome.ok || !(isUndone || step.kind === 'restart' || step.kind === 'kill');
    this.#reach(step.kind, isDone ? { ...this.#node, host: after.host } : this.#node);
    if (step.kind === 'uncordon' && isDone) this.#change('uncordons its node', withoutCordon);
    // The real agent reads its Node again after both steps, so that its next report is based on the version that it
    // wrote.
    if (this.#rules.isNode && (step.kind === 'cordon-and-drain' || step.kind === 'uncordon')) {
      this.#node = { ...this.#node, known: true, floor: this.#node.versions.length };
    }
    return outcome;
  }

  /** Reads and writes the Node as one effect. If somebody else writes in between, the real agent retries. */
  #change(label: string, change: (node: Node) => Node): void {
    if (!this.#rules.isNode) return;
    const node = objectAt(this.#rules.contents, this.#node.versions);
    const changed = change(node);
    if (changed !== node)
      this.#reach(label, written(this.#node, contentOf(this.#rules.contents, changed)));
  }

  write(object: KubeObject): void {
    const status = decodeSignal(object.metadata.annotations)?.status?.status;
    if (Number(object.metadata.resourceVersion) !== this.#node.versions.length) {
      this.#reach(`fails to report ${status}`, this.#node);
      throw new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' });
    }
    const next = written(this.#node, contentOf(this.#rules.contents, withoutTimes(object)));
    this.asked.add('isAnswerLost');
    if (this.#answers.isAnswerLost === true) {
      this.#reach(`reports ${status}`, next);
      throw new TransportError('no answer');
    }
    this.#reach(`reports ${status}`, { ...next, floor: next.versions.length });
  }

  #reach(label: string, to: NodeState): void {
    this.#node = to;
    this.trail.push({ label, to });
  }
}

/**
 * Removes the durations of the statuses, which are only shown to people, and the time for which the new process has
 * worked, which matters only for the Leases of components. The model has no such Leases. Without these times fewer
 * histories differ.
 */
function withoutTimes(object: KubeObject): KubeObject {
  const { [REPORT_ANNOTATION]: report, ...annotations } = object.metadata.annotations ?? {};
  if (report === undefined) return object;
  const { spent: _, upMs: _upMs, ...told } = JSON.parse(report) as AgentReport;
  const kept = { ...annotations, [REPORT_ANNOTATION]: JSON.stringify(told) };
  return { ...object, metadata: { ...object.metadata, annotations: kept } };
}
