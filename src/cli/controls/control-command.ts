/** Applies a control: chooses the plan, decides, writes with a precondition, and says what happens next. */
import { controlKey } from '../../engine/model/controls.ts';
import { isFinal } from '../../engine/model/rollout.ts';
import { annotated, type KubeObject, withoutAnnotations } from '../../kube/resources.ts';
import { isConflict } from '../../kube/status-error.ts';
import { RefitError, unlessError } from '../../util/errors.ts';
import { ownMember } from '../../util/own-member.ts';
import { printable } from '../../util/printable.ts';
import type { ConnectionFlags } from '../options.ts';
import { wrapped } from '../phrases.ts';
import type { ShownPlan } from '../status/json-form.ts';
import { ignoresControls } from '../status/leaderless.ts';
import { askLeader } from '../status/load.ts';
import { type Inspection, inspect, inspectAll, shownAt } from '../status/observe.ts';
import { isNamed, noPlan, shownRefOf } from '../status/plan-names.ts';
import { inSession, plansIn, type Session, type SessionParts } from '../status/status-session.ts';
import { noteLines } from '../status/text.ts';
import type { Control, PlanChange } from './control.ts';
import { type DryRunFlags, dryRunLines } from './dry-run.ts';

export interface ControlFlags extends ConnectionFlags, DryRunFlags {
  readonly plan?: string;
}

/**
 * The maximum number of attempts to write a control. Leaders often write to the plan, so a write may conflict. Each
 * attempt reads the plan again.
 */
const MAX_TRIES = 10;

/**
 * Applies a control to one plan and prints the result. Resolves even if the control changes
 * nothing.
 */
export async function applyControl(
  control: Control,
  flags: ControlFlags,
  parts: SessionParts,
): Promise<void> {
  const { clock } = parts;
  await inSession(flags, parts, 'refit-control', async (session) => {
    const now = clock.now();
    const { change, view } = await carryOut(control, session, flags, now);
    const said = [...change.said, ...(change.annotations ? dryRunLines(flags) : [])];
    say(parts, await withLeaderNotes(said, session, view, now));
  });
}

/**
 * Resolves with the sentences of a control and with what the user must know about the leader of the plan. Another
 * leader that ignores the control is named first, because it makes the sentences untrue for now.
 */
export async function withLeaderNotes(
  said: readonly string[],
  session: Session,
  view: ShownPlan,
  now: number,
): Promise<string[]> {
  const leader = await askLeader(session, now);
  const notes = noteLines({ leader, plans: [view] }, now);
  return ignoresControls({ leader }, view) ? [...notes, ...said] : [...said, ...notes];
}

async function carryOut(control: Control, session: Session, flags: ControlFlags, now: number) {
  const { client, abort, viewParts } = session;
  const inspections = await inspectPlans(session, flags.plan, now);
  let inspection = choosePlan(inspections, flags.plan, control);
  const { dialect } = inspection;
  // If the user named a plan, only this plan was inspected.
  const hasOthers = plansIn(session.loaded).length > 1;
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    const view = shownAt(inspection, now);
    const change = control({ ...inspection, view, hasOthers }, now);
    if (!change.annotations || (await write(session, inspection, change, flags)))
      return { change, view };
    const { name, namespace } = inspection.plan.metadata;
    const plan = await client.get(dialect.plans, name, { namespace, abort });
    inspection = await inspect(inspection, plan, viewParts, now);
  }
  throw new RefitError(
    'REFIT_CONTROL',
    'the plan changed during each attempt, so nothing was written: run this again',
  );
}

/**
 * Resolves with every plan that can be read. Rejects if there is none. `named` is the plan that the user asked for.
 */
export async function inspectPlans(
  { loaded, viewParts }: Session,
  named: string | undefined,
  now: number,
): Promise<readonly Inspection[]> {
  const { inspections, unreadable } = await inspectAll(loaded, viewParts, now);
  if (inspections.length > 0) return inspections;
  const [fault] = unreadable;
  throw fault ?? new RefitError('REFIT_CONTROL', noPlan(plansIn(loaded), { plan: named }));
}

/** Prints the sentences, wrapped to the width of the terminal. */
export function say({ output }: Pick<SessionParts, 'output'>, sentences: readonly string[]): void {
  const { columns } = output.size();
  output.write(`${sentences.flatMap((text) => wrapped(printable(text), columns)).join('\n')}\n`);
}

/** Writes the annotations of the change. Resolves with false if the plan has changed since it was read. */
async function write(
  { client, abort }: Session,
  { dialect, plan }: Inspection,
  { annotations = {} }: PlanChange,
  { dryRun }: DryRunFlags,
): Promise<boolean> {
  if (dryRun === 'client') return true;
  const { name, namespace, resourceVersion } = plan.metadata;
  const written: [string, string | null][] = [];
  for (const [key, value] of Object.entries(annotations)) {
    written.push([controlKey(key, dialect.planObjects?.controlPrefix), value]);
    // A removal also removes the annotation with the prefix of Refit itself, because an earlier release wrote only that
    // prefix.
    if (value === null) written.push([key, null]);
  }
  const metadata = sealedChange(dialect, plan, Object.fromEntries(written));
  const patch = { metadata: { ...metadata, resourceVersion } };
  const writing = client.patch(dialect.plans, name, patch, {
    type: 'merge',
    dryRun: dryRun === 'server',
    namespace,
    abort,
  });
  return (await unlessError(isConflict)(writing)) !== undefined;
}

/**
 * Returns the change of the metadata of the plan for these annotations; null removes one. If the dialect proves what
 * Refit wrote, the change also sets the seal, and removes annotations that Refit did not write.
 */
function sealedChange(
  { planObjects }: Inspection['dialect'],
  plan: KubeObject,
  annotations: Readonly<Record<string, string | null>>,
): object {
  if (planObjects?.sealed === undefined) return { annotations };
  const set = Object.entries(annotations).flatMap(([key, value]) =>
    value === null ? [] : [[key, value] as const],
  );
  const kept = withoutAnnotations(plan, ...Object.keys(annotations));
  const changed = annotated(kept, Object.fromEntries(set));
  const { metadata } = planObjects.sealed(changed, plan);
  return {
    annotations: differenceOf(plan.metadata.annotations, metadata.annotations),
    labels: differenceOf(plan.metadata.labels, metadata.labels),
  };
}

/** Returns the members that a merge patch needs: those that differ, and null for those that are gone. */
function differenceOf(
  before: Readonly<Record<string, string>> = {},
  after: Readonly<Record<string, string>> = {},
): Record<string, string | null> {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = keys.filter((key) => ownMember(before, key) !== ownMember(after, key));
  return Object.fromEntries(changed.map((key) => [key, ownMember(after, key) ?? null]));
}

/**
 * Returns the plan that the user named. Without a name, considers only the plans for which `isMeant` returns true, or
 * those for which `isAbout` returns true, or all plans if there is no such plan. From the considered plans, returns the only plan that has not ended. If all of
 * them have ended, returns the plan that was created last. Throws REFIT_USAGE if several plans are possible, and
 * REFIT_CONTROL if no plan is possible.
 */
export function choosePlan(
  plans: readonly Inspection[],
  named: string | undefined,
  { isMeant = () => true, isAbout = () => false }: Pick<Control, 'isMeant' | 'isAbout'> = {},
): Inspection {
  const preferred = [plans.filter(isMeant), plans.filter(isAbout)];
  const unnamed = preferred.find((found) => found.length > 0) ?? plans;
  const matching = named === undefined ? unnamed : plans.filter((each) => isNamed(each, named));
  const open = matching.filter(({ snapshot }) => !isFinal(snapshot.rollout));
  const candidates = oneOfEach(open.length > 0 ? open : newest(matching));
  const [chosen, second] = candidates;
  if (!chosen) throw new RefitError('REFIT_CONTROL', noPlan(plans, { plan: named }));
  if (!second) return chosen;
  const choice = candidates.map(shownRefOf).toSorted().join(', ');
  const hint = 'name one of them with --plan';
  throw new RefitError('REFIT_USAGE', `several plans are possible: ${choice}`, { hint });
}

/** Returns, of plans with the same kind and name, only those that were created last. The earlier ones only end their work. */
function oneOfEach(plans: readonly Inspection[]): Inspection[] {
  const keyOf = (each: Inspection): string =>
    `${each.snapshot.rollout.source.kind} ${shownRefOf(each)}`;
  return [...Map.groupBy(plans, keyOf).values()].flatMap(newest);
}

/** Returns the plans that were created last. There are several if they were created in the same second. */
function newest(plans: readonly Inspection[]): Inspection[] {
  const created = ({ snapshot }: Inspection): number => Date.parse(snapshot.rollout.source.created);
  const last = Math.max(...plans.map(created));
  return plans.filter((each) => created(each) === last);
}
