/** Shows one earlier run of a plan to the page, as far as the NodeRollout has recorded it. */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { formatDuration } from '../../util/duration.ts';
import { causesOf, historyOf, type PlanHistory } from '../history/history.ts';
import { runNameIn, startedRunName } from '../history/run-names.ts';
import { isRolloutOf, keyOf, type Seen } from './make-state.ts';
import type { NodeOfRun, RunShown, Said } from './state.ts';

/** Returns the run with this name, as the links of the page name it; undefined if the plan has no such run. */
export function explainRun(
  { status, rollouts }: Pick<Seen, 'status' | 'rollouts'>,
  key: string,
  name: string,
): RunShown | undefined {
  const plan = status.plans.find((each) => keyOf(each) === key);
  const rollout = plan && rollouts.find((each) => isRolloutOf(each, plan));
  if (rollout === undefined) return undefined;
  const history = historyOf(rollout);
  // The page shows the present run itself, so its links name only runs that have ended.
  const ended = history.runs.filter((each) => each.ended !== undefined);
  const run = ended.find((each) => [runNameIn(ended, each), startedRunName(each)].includes(name));
  return run && runShown(run, history);
}

function runShown(run: NodeRolloutRun, { runs }: PlanHistory): RunShown {
  const { started, ended, phase, counts, version } = run;
  const causes = causesOf(run, runs);
  const said: Said[] = [
    { heading: 'ended', lines: [`${phase} ${counts.done}/${counts.total}${tookOf(run)}`] },
    ...(causes.length === 0 ? [] : [{ heading: 'why', lines: causes }]),
    { heading: 'nodes', lines: countLines(run) },
  ];
  return {
    started,
    ...(ended === undefined ? {} : { ended }),
    version: version ?? '',
    said,
    nodes: nodesOf(run),
  };
}

function tookOf({ started, ended }: NodeRolloutRun): string {
  const ms = Date.parse(ended ?? '') - Date.parse(started);
  return Number.isNaN(ms) ? '' : `, after ${formatDuration(ms)}`;
}

function countLines(run: NodeRolloutRun): string[] {
  const { done, failed, inProgress, pending, skipped } = run.counts;
  const counts = [
    [failed, 'failed'],
    [inProgress, 'in progress at the end'],
    [pending, 'never started'],
    [skipped, 'left out'],
  ] as const;
  const others = counts.filter(([count]) => count > 0).map(([count, word]) => `, ${count} ${word}`);
  const before = (run.before ?? []).filter(({ others: isForOthers }) => isForOthers === true);
  return [
    `${done} done${others.join('')}`,
    ...before.map(({ role, version }) => `all other ${role}s ran ${version ?? UNKNOWN} before`),
    ...(isEachDone(run) ? [] : ['the record names the failed nodes, not those that are done']),
    'the record has no steps of single nodes',
  ];
}

const UNKNOWN = 'an unknown version';

/** Returns the nodes that the record names. */
function nodesOf(run: NodeRolloutRun): NodeOfRun[] {
  const { before = [], failures = [], version } = run;
  const failed = new Map(failures.map((each) => [each.node, each.message ?? each.reason ?? '']));
  const named = before.flatMap(({ version: from, nodes = [] }) =>
    nodes.map((name) => ({ name, ...(from === undefined ? {} : { from }) })),
  );
  const known = new Set(named.map(({ name }) => name));
  const unnamed = [...failed.keys()].filter((name) => !known.has(name)).map((name) => ({ name }));
  const to = isEachDone(run) && version !== undefined && version !== '' ? { to: version } : {};
  return [...named, ...unnamed].map((node): NodeOfRun => {
    const failure = failed.get(node.name);
    return failure === undefined ? { ...node, ...to } : { ...node, failure };
  });
}

/** Returns true if every node has got the version of the run. Otherwise the record does not say which nodes have got it. */
function isEachDone({ counts: { done, total } }: NodeRolloutRun): boolean {
  return done === total;
}
