/** Events on a Plan, with the reasons of the original: alerts search for them. A record has at most one of each. */
import type { CattlePlan } from '../../api/cattle/plan.ts';
import type { ReportedEvent } from '../../engine/model/reasons.ts';
import { listed } from '../../util/phrases.ts';
import { conditionOf } from './conditions.ts';

/** Ours say the same. */
const REPLACED = new Set([
  'Started',
  'Completed',
  'TargetFailed',
  'TargetRefused',
  'InvalidPlan',
  'VersionUnknown',
  'ChannelUnanswered',
  'NoTargets',
  'Warning',
]);
const MOST_NAMES = 10;

/** From what a record changes in the conditions of the Plan; `ours` are those of the engine. */
export function cattleEvents(
  before: CattlePlan,
  after: CattlePlan,
  ours: readonly ReportedEvent[],
): readonly ReportedEvent[] {
  const { latestVersion, latestHash, applying = [] } = after.status ?? {};
  const target = `version ${latestVersion}, hash ${latestHash}`;
  const left = (before.status?.applying ?? []).filter((host) => !applying.includes(host));
  const started = applying.filter((host) => !before.status?.applying?.includes(host));
  const events: ReportedEvent[] = [];
  const add = (type: ReportedEvent['type'], code: string, message: string): number =>
    events.push({ type, reason: { code, message } });
  const changed = (type: string): string | undefined => {
    const [was, is] = [conditionOf(before, type), conditionOf(after, type)];
    return was?.status === is?.status && was?.message === is?.message && was?.reason === is?.reason
      ? undefined
      : `${is?.status} ${is?.reason}`;
  };
  const told = (type: string): string => conditionOf(after, type)?.message ?? '';
  const [validated, complete] = [changed('Validated'), changed('Complete')];
  if (validated?.startsWith('True') === true) add('Normal', 'Validated', 'the Plan is valid');
  if (validated?.startsWith('False') === true) add('Warning', 'ValidateFailed', told('Validated'));
  if (changed('LatestResolved')?.startsWith('False') === true) add('Warning', 'ResolveFailed', told('LatestResolved'));
  if (latestVersion !== undefined && latestVersion !== before.status?.latestVersion)
    add('Normal', 'Resolved', `resolved to ${target}`);
  if (complete === 'False JobFailed') add('Warning', 'JobFailed', told('Complete'));
  if (complete === 'False ValidationFailed') add('Warning', 'ValidationFailed', told('Complete'));
  if (left.length > 0) add('Normal', 'JobComplete', `Jobs ended on ${listed(left, MOST_NAMES)}: ${target}`);
  if (started.length > 0) add('Normal', 'SyncJob', `Jobs start on ${listed(started, MOST_NAMES)}: ${target}`);
  if (complete === 'False Waiting') add('Normal', 'Waiting', told('Complete'));
  if (complete?.startsWith('True') === true) add('Normal', 'Complete', `every selected node is done: ${target}`);
  for (const { type, reason } of ours)
    if (!REPLACED.has(reason.code))
      add(type, reason.code === 'Resting' ? 'JobCompleteWaiting' : reason.code, reason.message);
  return events;
}
