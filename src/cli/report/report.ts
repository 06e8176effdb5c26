/**
 * Makes the report about one plan. The report contains the state of the plan as the dashboard shows it, sums, the nodes
 * that took longest, failures and Events.
 */
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { percentOf } from '../../engine/explain/progress.ts';
import type { Event } from '../../kube/resources.ts';
import type { ReadyReport } from '../../ready/finding.ts';
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { explainNode, keyOf, runsOf, type Seen, stateOf } from '../dashboard/make-state.ts';
import type { NodeState, PagePlan, Said } from '../dashboard/state.ts';
import { historyOf, type PlanHistory } from '../history/history.ts';
import { ORDER, sentenceOf, verdictOf } from '../ready/render.ts';
import { fullNameOf } from '../status/text.ts';
import { eventsOfRun, type ReportEvent } from './run-events.ts';

/** The JSON form of `refit report`. */
export interface Report {
  /** RFC 3339 time at which the cluster was read. */
  readonly at: string;
  readonly plan: PagePlan;
  /** The id of the trace of the last run; absent if no trace was sent. */
  readonly traceId?: string;
  readonly versions: readonly VersionChange[];
  /** For each step, the milliseconds that all nodes together spent on it; the longest step first. */
  readonly steps: readonly { readonly step: string; readonly ms: number; readonly nodes: number }[];
  /** The nodes that took longest, the longest first. */
  readonly longest: readonly { readonly node: string; readonly ms: number }[];
  readonly failures: readonly { readonly node: string; readonly message: string }[];
  /** The names of the nodes that were rolled back to their earlier version. */
  readonly rolledBack: readonly string[];
  /** The Events that Refit wrote during the run, the earliest first. The API server keeps Events for an hour by default. */
  readonly events: readonly ReportEvent[];
  /** Sentences, each of which names a kind of object that the user has no right to read. */
  readonly missing: readonly string[];
  /** What the checks of `refit ready` found; absent if nobody asked, or if the first node of the plan has started. */
  readonly ready?: ReadyReport;
}

interface VersionChange {
  readonly role: string;
  readonly before?: string | undefined;
  readonly after: string;
  readonly nodes: number;
  /**
   * The number of nodes that have the version `after`. Each other node still has the version `before`, was rolled back
   * to it, or is being upgraded.
   */
  readonly done: number;
}

const MOST_LONGEST = 10;
/** The phases of nodes that the report explains, in this order. Nodes in other phases need no explanation. */
const EXPLAINED: readonly NodeState['phase'][] = ['failed', 'moving', 'skipped'];
/** The maximum number of nodes with an explanation. Each explanation evaluates the whole plan. */
const MOST_EXPLAINED = 200;
/** The maximum number of findings of `refit ready` in the text. The JSON form has all of them. */
const MOST_FINDINGS = 100;

interface Read extends Seen {
  readonly events: readonly Event[];
  readonly ready?: ReadyReport | undefined;
}

/** Returns the report about the plan in `read.status`, which must contain exactly one plan. */
export function reportOf(read: Read, now: number): Report {
  const [view] = read.status.plans;
  const [state] = stateOf(read, now).plans;
  if (view === undefined || state === undefined) throw new Error('the status has no plan');
  const targets = view.stages.flatMap((stage) => stage.targets);
  const explained = namesToExplain(state.nodes);
  const nodes = state.nodes.map((node) =>
    explained.has(node.name)
      ? { ...node, why: explainNode(read.status, keyOf(view), node.name, now) }
      : node,
  );
  const report = {
    at: rfc3339(now),
    plan: { ...state, nodes },
    versions: versionsOf(nodes),
    steps: stepsOf(nodes),
    longest: longestOf(nodes),
    failures: nodes
      .filter(({ phase }) => phase === 'failed')
      .map(({ name, state: what, message }) => ({ node: name, message: message || what })),
    rolledBack: targets.filter(({ rolledBack }) => rolledBack).map(({ name }) => name),
    ...(state.traceId === undefined ? {} : { traceId: state.traceId }),
    events: eventsOfRun(read.events, {
      uid: view.uid,
      namespace: view.namespace,
      nodes,
      from: state.started,
    }),
    missing: read.missing,
    ...(read.ready === undefined ? {} : { ready: read.ready }),
  };
  return { ...report, plan: { ...report.plan, report: saidOf(report) } };
}

function namesToExplain(nodes: readonly NodeState[]): ReadonlySet<string> {
  const names = EXPLAINED.flatMap((phase) =>
    nodes.filter((node) => node.phase === phase).map(({ name }) => name),
  );
  return new Set(names.slice(0, MOST_EXPLAINED));
}

/** Returns the report about a deleted plan. Only the history of such a plan exists. */
export function reportOfDeleted(
  rollout: NodeRollout,
  missing: readonly string[],
  now: number,
): Report {
  const history = historyOf(rollout);
  const runs = runsOf(history);
  const last = runs[0];
  const { done, total } = last ?? { done: 0, total: 0 };
  return {
    at: rfc3339(now),
    plan: {
      key: `${history.dialect}/${history.namespace ?? ''}/${history.name}`,
      title: `${fullNameOf(history)} (deleted)`,
      phase: last?.phase ?? 'new',
      isOpen: false,
      versions: last?.version ?? '',
      done,
      total,
      percent: percentOf({ done, total }),
      progress: [],
      started: last?.started ?? rollout.metadata.creationTimestamp ?? rfc3339(now),
      ended: last?.ended,
      chief: '',
      why: deletedWhy(history),
      held: [],
      checks: [],
      nodes: [],
      history: runs,
    },
    versions: [],
    steps: [],
    longest: [],
    failures: (history.runs[0]?.failures ?? []).map(({ node, message = 'no message' }) => ({
      node,
      message,
    })),
    rolledBack: [],
    events: [],
    missing,
  };
}

function deletedWhy({ deleted }: PlanHistory): Said[] {
  const when = deleted === undefined ? '' : ` at ${deleted}`;
  return [
    {
      heading: 'state',
      lines: [`The plan was deleted${when}. Its NodeRollout lists the runs, but not every node.`],
    },
  ];
}

function versionsOf(nodes: readonly NodeState[]): VersionChange[] {
  const changes = new Map<string, VersionChange>();
  for (const { role, from, version, phase } of nodes) {
    const key = JSON.stringify([role, from, version]);
    const { nodes: counted = 0, done = 0 } = changes.get(key) ?? {};
    changes.set(key, {
      role,
      before: from,
      after: version,
      nodes: counted + 1,
      done: done + (phase === 'done' ? 1 : 0),
    });
  }
  return [...changes.values()];
}

/**
 * Returns for each kind of step the time that all nodes together spent on it. The step that took longest is the first.
 */
export function stepsOf(nodes: readonly Pick<NodeState, 'steps'>[]): Report['steps'] {
  const sums = new Map<string, { step: string; ms: number; nodes: number }>();
  for (const { steps } of nodes) {
    // Several steps of a node may have the same name, such as the restart of the upgrade and the restart of the
    // roll-back.
    for (const [word, same] of Map.groupBy(steps, ({ word }) => word)) {
      const sum = sums.get(word) ?? { step: word, ms: 0, nodes: 0 };
      const ms = same.reduce((total, { from, to }) => total + to - from, sum.ms);
      sums.set(word, { step: word, ms, nodes: sum.nodes + 1 });
    }
  }
  return [...sums.values()].toSorted((a, b) => b.ms - a.ms);
}

function longestOf(nodes: readonly NodeState[]): Report['longest'] {
  return nodes
    .filter(({ steps }) => steps.length > 0)
    .map(({ name, steps }) => ({
      node: name,
      ms: (steps.at(-1)?.to ?? 0) - (steps[0]?.from ?? 0),
    }))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, MOST_LONGEST);
}

/** Returns the sums of the report in sentences, for people. */
export function saidOf(report: Omit<Report, 'plan' | 'at'>): Said[] {
  const { versions, steps, longest, failures, rolledBack, traceId, events, ready } = report;
  const all: Said[] = [
    { heading: 'Readiness', lines: ready === undefined ? [] : readyLines(ready) },
    {
      heading: 'Versions',
      lines: versions.map(
        ({ role, before = 'unknown', after, nodes, done }) =>
          `${nodes} ${role}${nodes === 1 ? '' : 's'}: ${before === after ? `${after}, also before the run` : `from ${before} to ${after}`}${done === nodes ? '' : `, of which ${done} ${done === 1 ? 'is' : 'are'} done`}`,
      ),
    },
    {
      heading: 'Time by step',
      lines: steps.map(
        ({ step, ms, nodes }) =>
          `${step}: ${formatDuration(ms)} on ${nodes} node${nodes === 1 ? '' : 's'}`,
      ),
    },
    {
      heading: 'Longest nodes',
      lines: longest.map(({ node, ms }) => `${node}: ${formatDuration(ms)}`),
    },
    { heading: 'Failures', lines: failures.map(({ node, message }) => `${node}: ${message}`) },
    { heading: 'Rolled back', lines: rolledBack },
    { heading: 'Trace', lines: traceId === undefined ? [] : [traceId] },
    {
      heading: 'Events',
      lines: events.map(
        ({ at, about, reason, message, count = 1 }) =>
          `${at} ${about}: ${reason}. ${message}${count > 1 ? ` (${count} times)` : ''}`,
      ),
    },
  ];
  return all.filter(({ lines }) => lines.length > 0);
}

function readyLines(report: ReadyReport): string[] {
  const shown = ORDER.filter((state) => state !== 'ok').flatMap((state) =>
    report.findings
      .filter((finding) => finding.state === state)
      .map((finding) => `${state} (${finding.check}): ${sentenceOf(finding)}`),
  );
  const rest = shown.length - MOST_FINDINGS;
  return [
    verdictOf(report),
    ...shown.slice(0, MOST_FINDINGS),
    ...(rest > 0 ? [`and ${rest} more: refit ready --to ${report.to}`] : []),
  ];
}
