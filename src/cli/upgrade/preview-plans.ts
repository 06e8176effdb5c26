/** Shows what the plans would do that `refit upgrade` writes, and says why they must not start. */
import type { ReadObject } from '../../api/read-object.ts';
import type { ReadyReport } from '../../ready/finding.ts';
import type { UpgradeFlags, UpgradeParts } from '../contract/upgrade-way.ts';
import { previewIn, previewLines } from '../preview/preview-command.ts';
import { sentenceOf } from '../ready/render.ts';
import type { Session } from '../status/status-session.ts';

/** Prints the preview. Resolves with the reasons why the plans must not start; with none if they may. */
export async function previewPlans(
  session: Session,
  plans: readonly ReadObject[],
  flags: UpgradeFlags,
  parts: UpgradeParts,
): Promise<readonly string[]> {
  const { view, problems } = await previewIn(session, { plans, policies: [] }, flags, parts);
  // The command replaces an ended plan itself, so the user has nothing to do before.
  const shown = view.plans.map((plan) => ({ ...plan, first: undefined, present: undefined }));
  parts.output.write(`\n${previewLines({ ...view, plans: shown }, parts)}`);
  return [...problems, ...blockerReasons(view.ready ?? [])];
}

/** Returns a reason for each blocker of the reports, and how a person accepts it. */
export function blockerReasons(reports: readonly ReadyReport[]): string[] {
  return reports.flatMap(({ findings }) =>
    findings
      .filter(({ state }) => state === 'blocker')
      .map(
        (finding) =>
          `${sentenceOf(finding)}; to start all the same, pass --accept ${finding.check}=REASON`,
      ),
  );
}
