/** Runs `refit report`: reads one plan with its Events and its NodeRollout, and writes all of it as one file. */
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { planReference } from '../../engine/model/plan-reference.ts';
import type { ListAllOptions } from '../../kube/client.ts';
import { type Event, events, type KubeObject, type Resource } from '../../kube/resources.ts';
import { isForbidden, isNotFound } from '../../kube/status-error.ts';
import { withoutManagedFields } from '../../kube/trimmed.ts';
import type { ReadyReport } from '../../ready/finding.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { uiFiles } from '../dashboard/bundle.ts';
import { pageOf } from '../dashboard/page.ts';
import { historyOf, isHistoryOf } from '../history/history.ts';
import type { ConnectionFlags } from '../options.ts';
import { readAccepted } from '../ready/accept-flag.ts';
import {
  type AskedDialect,
  type ReadyAskerFlags,
  type ReadyAskerParts,
  readinessFor,
  versionBeforeStart,
} from '../ready/before-start.ts';
import { inspectAll, observe } from '../status/observe.ts';
import { type PlanFilter, refOf } from '../status/plan-names.ts';
import {
  inSession,
  observeOnce,
  plansIn,
  type Session,
  type SessionParts,
} from '../status/status-session.ts';
import { markdownOf } from './markdown.ts';
import { type Report, reportOf, reportOfDeleted } from './report.ts';
import { svgOf } from './svg.ts';

type Form = 'html' | 'svg' | 'json' | 'markdown';

interface ReportFlags extends ConnectionFlags, ReadyAskerFlags, Omit<PlanFilter, 'plan'> {
  /** Markdown on a terminal by default, and otherwise HTML. */
  readonly output?: Form | undefined;
  readonly accept?: readonly string[];
}

export type ReportCommandParts = Omit<SessionParts, 'modules'> & {
  /** With `readiness`, the report about a plan that has not started also contains the checks of `refit ready`. */
  readonly modules: readonly AskedDialect[];
};

/**
 * Writes the report. Rejects with REFIT_USAGE if HTML or SVG would be written to a terminal. Rejects with REFIT_CONTROL
 * if no plan has the name, or if several plans have it.
 */
export async function writeReport(
  plan: string | undefined,
  flags: ReportFlags,
  parts: ReportCommandParts,
): Promise<void> {
  const { output, clock } = parts;
  const { accept = [], ready = true } = flags;
  const form = flags.output ?? (output.isTerminal ? 'markdown' : 'html');
  const accepted = readAccepted(accept);
  const isPicture = form === 'svg';
  if (accept.length > 0 && (!ready || isPicture))
    throw new RefitError(
      'REFIT_USAGE',
      `--accept has no effect with ${isPicture ? '-o svg, which shows no sentences' : '--no-ready'}: leave one of them out`,
    );
  const isForPrograms = form === 'html' || form === 'svg';
  if (isForPrograms && output.isTerminal)
    throw new RefitError('REFIT_USAGE', `-o ${form} is not for a terminal`, {
      hint: `write it to a file: refit report … -o ${form} > report.${form}`,
    });
  const filter = plan === undefined ? flags : { ...flags, plan };
  await inSession(filter, parts, 'refit-report', async (session) => {
    const components = parts.modules.flatMap(({ process }) => process.eventComponents);
    const now = clock.now();
    const askReady = async () =>
      isPicture ? undefined : await readinessOf(session, flags, { ...parts, accepted }, now);
    const report = await read(session, { filter, components, askReady }, now);
    output.write(await written(report, form));
  });
}

/** Resolves with what `refit ready` says about the plan of the session; undefined if nobody asks that any more. */
async function readinessOf(
  session: Session,
  flags: ReportFlags,
  parts: Omit<ReadyAskerParts, 'policies'>,
  now: number,
): Promise<ReadyReport | undefined> {
  const { loaded, viewParts } = session;
  const { policies } = viewParts;
  const { inspections } = await inspectAll(loaded, viewParts, now);
  const versions = inspections.flatMap((each) => versionBeforeStart(each, now) ?? []);
  return (await readinessFor(versions, session, flags, { ...parts, policies }))?.[0];
}

interface Question {
  readonly filter: PlanFilter;
  readonly askReady: () => Promise<ReadyReport | undefined>;
  /** The components whose Events the report shows. */
  readonly components: readonly string[];
}

async function read(
  session: Session,
  { filter, components, askReady }: Question,
  now: number,
): Promise<Report> {
  const missing: string[] = [];
  const rollouts = await listIfAllowed(session, nodeRollouts, missing);
  const findDeleted = async () =>
    deletedPlan(rollouts, session, filter, await shownReferences(session, now));
  const status = await observeOnce(session, now).catch(async (error: unknown) => {
    const isUnknown = error instanceof RefitError && error.code === 'REFIT_CONTROL';
    const deleted = isUnknown ? await findDeleted() : undefined;
    if (deleted === undefined) throw error;
    return deleted;
  });
  if (!('plans' in status)) return reportOfDeleted(status, missing, now);
  const [only, ...others] = status.plans.map(planReference);
  if (only === undefined) {
    const deleted = await findDeleted();
    if (deleted !== undefined) return reportOfDeleted(deleted, missing, now);
    throw new RefitError('REFIT_CONTROL', 'there is no plan, and no record of a deleted one');
  }
  if (others.length > 0)
    throw new RefitError(
      'REFIT_CONTROL',
      `there is more than one plan: ${listed([only, ...others])}`,
      {
        hint: `name one, such as \`refit report ${only}\``,
      },
    );
  const said = await Promise.all(
    components.map(async (component) => {
      // The API server filters by component, because a large cluster has many Events of other components.
      const options = { fieldSelector: `source=${component}`, transform: withoutManagedFields };
      return await listIfAllowed<Event>(session, events, missing, options);
    }),
  );
  const named = [...new Set(missing)];
  const ready = await askReady();
  return reportOf({ status, rollouts, missing: named, events: said.flat(), ready }, now);
}

/**
 * Returns the references of all plans as they are shown. For Cluster API these name the Machines, as the NodeRollouts do, although each
 * plan is kept in a Node.
 */
async function shownReferences({ loaded, viewParts }: Session, now: number): Promise<string[]> {
  const parts = { ...viewParts, filter: {} };
  const views = await Promise.all(loaded.map(async (each) => await observe(each, parts, now)));
  return views.flat().map(planReference);
}

/**
 * Returns the NodeRollout of a deleted plan that matches the filter; undefined if there is none. `shown` has the
 * references of the plans that exist. Throws REFIT_CONTROL if several deleted plans match.
 */
function deletedPlan(
  rollouts: readonly NodeRollout[],
  { loaded }: Session,
  { plan, namespace, dialect }: PlanFilter,
  shown: readonly string[],
): NodeRollout | undefined {
  const existing = plansIn(loaded);
  const references = new Set([...existing.map(refOf), ...shown]);
  const uids = new Set(existing.map((each) => each.plan.metadata.uid));
  const found = rollouts.filter((rollout) => {
    const history = historyOf(rollout);
    return (
      (plan === undefined || isHistoryOf(history, plan)) &&
      (namespace === undefined || history.namespace === namespace) &&
      (dialect === undefined || history.dialect === dialect) &&
      !references.has(planReference(history)) &&
      !uids.has(rollout.spec.plan.uid ?? '')
    );
  });
  const names = [...new Set(found.map((rollout) => planReference(historyOf(rollout))))].toSorted();
  const [first = ''] = names;
  if (names.length > 1)
    throw new RefitError(
      'REFIT_CONTROL',
      `more than one deleted plan ${plan === undefined ? 'is recorded' : `has the name ${plan}`}: ${listed(names)}`,
      { hint: `name one, such as \`refit report ${first}\`` },
    );
  return found.toSorted(byLastRun)[0];
}

/** Compares NodeRollouts by the start of their last run, the newest first. A plan that was deleted and created again may have several. */
function byLastRun(a: NodeRollout, b: NodeRollout): number {
  const [left, right] = [a, b].map(({ status }) => Date.parse(status?.history?.[0]?.started ?? ''));
  return (right || 0) - (left || 0);
}

/**
 * Resolves with the objects of a kind; with none if the cluster does not have the kind, or if the user has no right to list it. If the
 * right is missing, adds a sentence to `missing`.
 */
async function listIfAllowed<T extends KubeObject>(
  { client, abort }: Session,
  resource: Resource<T>,
  missing: string[],
  options: ListAllOptions<T> = {},
): Promise<readonly T[]> {
  try {
    return (await client.listAll(resource, { ...options, abort })).items;
  } catch (error) {
    if (isForbidden(error)) missing.push(messageOf(error));
    else if (!isNotFound(error)) throw error;
    return [];
  }
}

async function written(report: Report, form: Form): Promise<string> {
  if (form === 'json') return `${JSON.stringify(report, undefined, 2)}\n`;
  if (form === 'markdown') return markdownOf(report);
  if (form === 'svg') return svgOf(report);
  const { at, plan, missing } = report;
  const state = { at, notes: [], missing, plans: [plan] };
  return pageOf({ kind: 'file', files: await uiFiles(), state });
}
