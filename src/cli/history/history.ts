/** Makes the view of `refit history` from NodeRollouts: the last runs of each plan, and why each run ended. */

import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { runIdIn } from '../../engine/model/runs.ts';
import { tellsFailure } from '../../engine/reasons/about-target.ts';
import { DIALECT_LABEL } from '../../engine/report/node-rollout-object.ts';
import { snapshotSentence } from '../../signal/snapshot-sentence.ts';
import { counted } from '../../util/phrases.ts';
import { type Medium, mediumOf, type Output } from '../output.ts';
import { age, type LinePart, partLines, wrapped } from '../phrases.ts';
import { harmless } from '../status/harmless.ts';
import { fullNameOf } from '../status/text.ts';
import { isNamedRun, runNameIn } from './run-names.ts';

/** The JSON form of one plan. The newest run is the first. The runs have the fields of `status.history`. */
export interface PlanHistory {
  readonly dialect: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  /** RFC 3339 time at which the plan was found to be deleted. */
  readonly deleted?: string | undefined;
  readonly runs: readonly NodeRolloutRun[];
}

export function historyOf({ metadata, spec, status }: NodeRollout): PlanHistory {
  const { kind, name, namespace } = spec.plan;
  return harmless({
    dialect: metadata.labels?.[DIALECT_LABEL] ?? '',
    kind,
    namespace,
    name,
    deleted: status?.planDeleted,
    runs: status?.history ?? [],
  });
}

/** Returns true if `named` is a name of the plan, in one of the forms that `--plan` of `refit status` takes. */
export function isHistoryOf(history: PlanHistory, named: string): boolean {
  const { dialect, kind, namespace, name } = history;
  const heads = [dialect, kind, kind.toLowerCase()];
  const place = namespace === undefined ? [] : [namespace, `${dialect}/${namespace}`];
  return [name, ...[...heads, ...place].map((head) => `${head}/${name}`)].includes(named);
}

export function historyLines(
  histories: readonly PlanHistory[],
  now: number,
  output: Pick<Output, 'hasColours' | 'size'>,
): string[] {
  if (histories.length === 0) return ['There is no NodeRollout, so no run is recorded.'];
  const medium = mediumOf(output);
  return histories.flatMap((history, index) => [
    ...(index === 0 ? [] : ['']),
    ...planLines(history, now, medium),
  ]);
}

function planLines(history: PlanHistory, now: number, medium: Medium): string[] {
  const { deleted, runs } = history;
  const gone = deleted === undefined ? '' : `  deleted ${age(deleted, now)} ago`;
  const title = `${medium.paint('bold', fullNameOf(history))}${gone}`;
  if (runs.length === 0) return [title, '  no run is recorded'];
  return [title, ...runs.flatMap((run) => runLines(run, runs, now, medium))];
}

/**
 * Returns the message about a failed node, without the name of the node and the word `Failed`. Other text already shows
 * these.
 */
function causeIn(message: string, node: string): string {
  return [`${node}: `, 'Failed: '].reduce(
    (text, words) => (text.startsWith(words) ? text.slice(words.length) : text),
    message,
  );
}

/**
 * Returns the failures of a run that are not in its message. If a run ends with its first failure, `message` and `failures` have the same
 * words.
 */
function untoldFailures({
  message,
  failures = [],
}: Pick<NodeRolloutRun, 'message' | 'failures'>): NonNullable<NodeRolloutRun['failures']> {
  if (message === undefined) return failures;
  return failures.filter(
    ({ node, message: why }) =>
      why === undefined || !tellsFailure(node, causeIn(why, node), message),
  );
}

/** Returns a line for each cause. Nodes with the same cause share a line. */
function failureLines(run: NodeRolloutRun): string[] {
  const byCause = Map.groupBy(untoldFailures(run), ({ node, message, reason }) =>
    message === undefined ? '' : `: ${causeIn(message, node)}${codeOf(unusual(reason))}`,
  );
  return [...byCause].map(
    ([cause, failures]) => `${failures.map(({ node }) => node).join(', ')} failed${cause}`,
  );
}

/** Returns the line that says which run of the history a run rolls back, by the name that this run has there. */
function rollBackLines(
  { rollsBack }: Pick<NodeRolloutRun, 'rollsBack'>,
  runs: readonly NodeRolloutRun[],
): string[] {
  if (rollsBack === undefined) return [];
  const earlier = runs.find((each) => isNamedRun(each, rollsBack.run));
  const name = earlier === undefined ? runIdIn(rollsBack.run) : runNameIn(runs, earlier);
  const asks = rollsBack.reason === undefined ? '' : `, says ${rollsBack.reason}`;
  return [`rolls run ${name} back${asks}`];
}

/**
 * Returns the lines that say which other run of the history a run rolls back, why it ended, which nodes failed, and
 * which snapshots of etcd it took. Every output about ended runs uses these lines.
 */
export function causesOf(run: NodeRolloutRun, runs: readonly NodeRolloutRun[]): string[] {
  const { counts, message, reason, failures = [], snapshots = [] } = run;
  const unnamed = counts.failed - failures.length;
  return [
    ...rollBackLines(run, runs),
    ...(message === undefined ? [] : [`${message}${codeOf(reason)}`]),
    ...failureLines(run),
    ...(unnamed > 0 ? [`${counted(unnamed, 'more node')} failed`] : []),
    ...snapshots.map((each) => `snapshot ${snapshotSentence(each.node, each)}`),
  ];
}

/** The usual code of a failure says nothing that the word `failed` does not say. */
function unusual(reason: string | undefined): string | undefined {
  return reason === 'TargetFailed' ? undefined : reason;
}

/** Returns the code of a reason in brackets. */
function codeOf(reason: string | undefined): string {
  return reason === undefined ? '' : ` (${reason})`;
}

function runLines(
  run: NodeRolloutRun,
  runs: readonly NodeRolloutRun[],
  now: number,
  medium: Medium,
): string[] {
  const name = runNameIn(runs, run);
  const { version, started, ended, phase, counts } = run;
  const end =
    ended === undefined
      ? `for ${age(started, now)}`
      : `after ${age(started, Date.parse(ended))}, ${age(ended, now)} ago`;
  const sum = `${phase} ${counts.done}/${counts.total}`;
  const style = phase === 'done' ? 'green' : 'red';
  const parts: LinePart[] = [
    { text: `  ${started}`, gap: '' },
    { text: sum, style: ended === undefined ? 'cyan' : style, gap: '  ' },
    { text: end, gap: ' ' },
    // A plan that was refused before its version was known has neither a version nor an id.
    ...(version === undefined || version === '' ? [] : [{ text: `to ${version}`, gap: '  ' }]),
    ...(name === '' ? [] : [{ text: `(${name})`, gap: '  ' }]),
  ];
  return [
    ...partLines(parts, medium, 4),
    ...causesOf(run, runs)
      .flatMap((line) => wrapped(line, medium.width - 6))
      .map((line) => `      ${line}`),
  ];
}
