/**
 * Implements `refit preview`. It shows what a plan would do on this cluster, and uses the same decision function as the
 * controller. Writes nothing.
 */

import type { ReadObject } from '../../api/read-object.ts';
import { refusalsOf, versionVerdict } from '../../engine/assess/advance.ts';
import { NOTHING_DONE, planEndOf } from '../../engine/assess/ended.ts';
import { pointsOfNoReturn } from '../../engine/explain/way-back.ts';
import { isFinal, type Rollout } from '../../engine/model/rollout.ts';
import { gather } from '../../engine/snapshot/gather.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { rfc3339 } from '../../util/clock.ts';
import { EXIT, RefitError } from '../../util/errors.ts';
import { readInputs } from '../input-files.ts';
import type { ConnectionFlags } from '../options.ts';
import { wrappedLines } from '../phrases.ts';
import {
  type AskedDialect,
  type ReadyAskerFlags,
  type ReadyAskerParts,
  readinessFor,
  versionBeforeStart,
} from '../ready/before-start.ts';
import { harmless } from '../status/harmless.ts';
import { jsonOf, type ShownPlan } from '../status/json-form.ts';
import { asIfApplied, askLeader, type Loaded } from '../status/load.ts';
import {
  type Inspection,
  inspect,
  inspectAll,
  shownAt,
  shownFault,
  type UnreadablePlan,
  type ViewParts,
} from '../status/observe.ts';
import { inSession, type Session, type SessionParts } from '../status/status-session.ts';
import type { TextsOf } from '../status/texts-of.ts';
import { durationOf, stagePreviews } from './batches.ts';
import { lookAtDrains, orderSentence, policyRule } from './findings.ts';
import { type PlanFiles, planFilesIn } from './plan-files.ts';
import { type PlanPreview, type PreviewView, problemsOf, renderPreview } from './view.ts';

interface PreviewFlags extends ConnectionFlags, ReadyAskerFlags {
  readonly file?: readonly string[];
  /** The words of `refit ready` that name the same files; absent if the plans are those of the cluster. */
  readonly readyWords?: string;
  readonly output: 'text' | 'json';
}

export interface PreviewParts
  extends Omit<SessionParts, 'modules'>,
    Pick<ReadyAskerParts, 'accepted'> {
  /** With `readiness`, the preview also makes the checks of `refit ready`. */
  readonly modules: readonly AskedDialect[];
}

/** Does what `previewObjects` does, with the files that the user named. */
export async function showPreview(flags: PreviewFlags, parts: PreviewParts): Promise<number> {
  const { file } = flags;
  const found = file && planFilesIn(await readInputs(file));
  // Standard input can be read only once, so the user has to name it again.
  const words = file?.map((path) => `-f ${path}`).join(' ');
  const more = words === undefined ? {} : { readyWords: words };
  return await previewObjects(
    async () => await Promise.resolve(found),
    { ...flags, ...more },
    parts,
  );
}

/**
 * Prints the preview of the plans that `read` resolves with, and resolves with 0. If `read` resolves with undefined, prints the previews of
 * all open plans. If a plan of the files would be refused or would do nothing, prints the preview and then rejects with REFIT_FILE. `read`
 * is called only after the API server has let the user list the plans of the cluster.
 */
export async function previewObjects(
  read: (loaded: readonly Loaded[]) => Promise<PlanFiles | undefined>,
  flags: Omit<PreviewFlags, 'file'>,
  parts: PreviewParts,
): Promise<number> {
  return await inSession(flags, parts, 'refit-preview', async (session) => {
    const found = await read(session.loaded);
    const { view, problems } = await previewIn(session, found, flags, parts);
    parts.output.write(
      flags.output === 'json'
        ? `${JSON.stringify(jsonOf(view), undefined, 2)}\n`
        : previewLines(view, parts, flags.readyWords),
    );
    if (problems.length > 0)
      throw new RefitError('REFIT_FILE', '', {
        problems,
        hint: `the preview above shows ${view.plans.length === 1 ? 'this plan' : 'each plan'}`,
      });
    return EXIT.ok;
  });
}

/** Returns the text form of the preview, wrapped to the width of the terminal. */
export function previewLines(
  view: PreviewView,
  { clock, output }: Pick<PreviewParts, 'clock' | 'output'>,
  readyWords?: string,
): string {
  return wrappedLines(renderPreview(view, clock.now(), readyWords), output.size().columns);
}

export interface PreviewOutcome {
  readonly view: PreviewView;
  /** Why plans of the files would be refused or would do nothing. Each text names the place of the plan. */
  readonly problems: readonly string[];
}

/** Resolves with the preview of the plans in `found`; of all open plans of the cluster if it is undefined. */
export async function previewIn(
  session: Session,
  found: PlanFiles | undefined,
  flags: ReadyAskerFlags,
  parts: PreviewParts,
): Promise<PreviewOutcome> {
  const { loaded } = session;
  const plansOfFiles = found?.plans;
  const now = parts.clock.now();
  const fromFiles = (plansOfFiles ?? []).map(({ object }) => object);
  const policies = asIfApplied(session.viewParts.policies, found?.policies ?? []);
  const viewParts = { ...session.viewParts, fromFiles, policies };
  const plans =
    plansOfFiles === undefined
      ? await previewOpen(loaded, viewParts, now)
      : await Promise.all(
          plansOfFiles.map(
            async (each) => await previewNew(each.object, servedBy(loaded, each), viewParts, now),
          ),
        );
  const versions = plans.flatMap(({ to }) => to ?? []);
  const view = {
    leader: await askLeader(session, now),
    plans: plans.map(({ texts, ...plan }) => ({ ...harmless(plan), texts })),
    ready: await readinessFor(versions, session, flags, { ...parts, policies }),
  };
  const problems = (plansOfFiles ?? []).flatMap(({ place }, index) => {
    const plan = plans[index];
    return plan === undefined ? [] : problemsOf(plan).map((problem) => `${place}: ${problem}`);
  });
  return { view, problems };
}

function servedBy(loaded: readonly Loaded[], { kind: { resource } }: ReadObject): Loaded {
  const seen = loaded.find(({ dialect }) => dialect.plans === resource);
  if (seen) return seen;
  throw new RefitError('REFIT_NO_CRD', `the cluster lacks ${resource.plural}.${resource.group}`);
}

/**
 * Previews a plan as if it were created at `now`. A status in the file is ignored. If a plan with the same name has
 * ended, the preview shows what happens after the user has replaced it.
 */
export async function previewNew(
  object: KubeObject,
  seen: Loaded,
  parts: ViewParts,
  now: number,
): Promise<PlanPreview> {
  const { status: _recorded, ...plan } = object as KubeObject & { status?: unknown };
  const { name, namespace } = plan.metadata;
  const { dialect, world } = seen;
  const present = seen
    .plans()
    .find(
      ({ metadata: it }) =>
        it.name === name && (namespace === undefined || it.namespace === namespace),
    );
  const uid = (dialect.planObjects?.ordersByUid === true && present?.metadata.uid) || '';
  const metadata = { ...plan.metadata, uid, creationTimestamp: rfc3339(now) };
  const inspection = await inspect(
    seen,
    { ...plan, metadata },
    { ...parts, countsPods: true },
    now,
  );
  const before = present && gather(dialect, present, world, now, { isReadOnly: true });
  const preview = await previewAt(inspection, parts, now, before && planEndOf(before, now).phase);
  // An aborted plan stays aborted, even if the policy lets an edit start a new rollout.
  const restarts = inspection.policy.restartsEdited && before?.plan.controls.abort === undefined;
  const isIgnored = before && isFinal(before.rollout) && dialect.reruns !== undefined && !restarts;
  return isIgnored ? { ...preview, first: removalOf(before.rollout) } : preview;
}

/**
 * Returns what the user must do with the ended plan of the same name. Otherwise nothing starts when the user applies the
 * new plan.
 */
function removalOf({ source: { kind, name }, phase }: Rollout): string {
  return `${kind} ${name} is in the cluster and has ended (${phase}), so kubectl apply alone starts nothing: delete it first, or run kubectl replace --force -f with this file`;
}

export async function previewOpen(
  loaded: readonly Loaded[],
  parts: ViewParts,
  now: number,
): Promise<PlanPreview[]> {
  const { inspections, unreadable } = await inspectAll(loaded, { ...parts, countsPods: true }, now);
  const open = inspections.filter(({ snapshot }) => !isFinal(snapshot.rollout));
  const previews = await Promise.all(open.map(async (each) => await previewAt(each, parts, now)));
  return [...previews, ...unreadable.map((fault) => previewOfFault(fault, parts.textsOf))].toSorted(
    (a, b) => (a.name < b.name ? -1 : 1),
  );
}

function previewOfFault(fault: UnreadablePlan, textsOf: TextsOf): PlanPreview {
  const { dialect, texts, kind, namespace, cluster, name, uid, id, phase, reason, waits } =
    shownFault(fault, textsOf);
  const named = { dialect, texts, kind, namespace, cluster, name, uid, id };
  return { ...named, phase, reason, waits, stages: [] };
}

const NOTHING =
  'the plan lists or selects no target, so it does nothing: check its selectors and limits';

/**
 * Returns true if a new plan has no target. The result is the same for all dialects, although some end such a plan at
 * once and others wait for a matching node.
 */
function doesNothing({ phase, reason, stages }: ShownPlan): boolean {
  const isOtherReason = reason !== undefined && reason !== NOTHING_DONE.message;
  return phase === 'new' && !isOtherReason && stages.every(({ targets }) => targets.length === 0);
}

async function previewAt(
  inspection: Inspection,
  parts: ViewParts,
  now: number,
  present?: PlanPreview['phase'],
): Promise<PlanPreview> {
  const view = shownAt(inspection, now);
  const drains = await lookAtDrains(inspection, parts.sources);
  const policy = policyRule(parts.policies, inspection.dialect.name, inspection.plan);
  const stages = stagePreviews(view, inspection, now);
  const finals = isFinal(inspection.snapshot.rollout) ? [] : pointsOfNoReturn(inspection);
  const duration = durationOf(stages, inspection, now);
  const { dialect, texts, kind, namespace, cluster, name, uid, id, phase, timeZone, paused } = view;
  const { waits, cordoned, decided } = view;
  // The preview looks at the drains of all nodes, so it has every warning about drains that the view has.
  const ofDrains = new Set(drains?.warnings);
  const others = view.warnings?.filter((warning) => !ofDrains.has(warning));
  const warnings = others?.length ? others : undefined;
  const refusals = isFinal(inspection.snapshot.rollout) ? [] : refusalsOf({ ...inspection, now });
  const isOrdered =
    inspection.dialect.planObjects?.ordersByUid !== true ||
    (inspection.plan.metadata.uid ?? '') !== '';
  const unordered =
    'the order of its nodes: it depends on the uid, which the Plan gets when it is created';
  const { unchecked } = versionVerdict(inspection.snapshot, inspection.policy);
  const skewed = `whether the version rules allow it: ${unchecked.join('; ')}`;
  // The preview names unchecked version rules only for a new plan. After the plan has started, an Event names them.
  const isSkewUnknown = phase === 'new' && unchecked.length > 0;
  const more = [...(isOrdered ? [] : [unordered]), ...(isSkewUnknown ? [skewed] : [])];
  const unseen = more.length === 0 ? view.unseen : [...(view.unseen ?? []), ...more];
  return {
    dialect,
    texts,
    kind,
    namespace,
    cluster,
    name,
    uid,
    id,
    to: doesNothing(view) ? undefined : versionBeforeStart(inspection, now),
    phase,
    present,
    reason: doesNothing(view) ? NOTHING : view.reason,
    problems: refusals.length > 0 ? refusals.map(({ message }) => message) : undefined,
    timeZone,
    paused,
    stages,
    waits,
    cordoned,
    decided,
    warnings,
    policy,
    order: orderSentence(inspection),
    drains,
    rollBack: view.rollBack,
    noReturn: finals.length > 0 ? finals : undefined,
    duration,
    checks: view.checks,
    unseen,
  };
}
