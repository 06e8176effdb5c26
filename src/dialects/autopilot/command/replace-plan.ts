/** Replaces an ended k0s Plan by another one. k0s starts a Plan only once, so a changed spec alone starts nothing. */
import { PLAN_NAME, type Plan, plans } from '../../../api/autopilot/plan.ts';
import { writeUnlessChanged } from '../../../cli/controls/roll-back.ts';
import type { Inspection } from '../../../cli/status/observe.ts';
import type { Session } from '../../../cli/status/status-session.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';

/** Makes the API server check the new spec, before the old Plan is deleted. */
export async function checkReplacement(
  session: Session,
  old: Inspection,
  { spec, metadata }: Plan,
  now: number,
): Promise<void> {
  const { client, abort } = session;
  await writeUnlessChanged(session, old, now, async (resourceVersion) => {
    const patch = { metadata: { resourceVersion, annotations: metadata.annotations }, spec };
    await client.patch(plans, PLAN_NAME, patch, { type: 'merge', dryRun: true, abort });
  });
}

/** Rejects with the new Plan in the message if the old one is deleted and the new one cannot be created. */
export async function replacePlan(
  session: Session,
  old: Inspection,
  plan: Plan,
  now: number,
): Promise<void> {
  const { client, abort } = session;
  const { uid } = old.plan.metadata;
  await writeUnlessChanged(session, old, now, async (resourceVersion) => {
    await client.delete(plans, PLAN_NAME, { uid, resourceVersion, abort });
  });
  try {
    await client.create(plans, plan, { abort });
  } catch (error) {
    throw new RefitError(
      'REFIT_CONTROL',
      `the old Plan is deleted, and the new one could not be created (${messageOf(error)}); apply it with kubectl: ${JSON.stringify(plan)}`,
      { cause: error },
    );
  }
}
