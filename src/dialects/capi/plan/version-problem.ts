/**
 * Checks the version to which Machines are to be updated. Cluster API checks versions only before it creates Machines.
 */
import type { Settings } from '../../../api/capi/hooks.ts';
import { readServerVersion } from '../../../kube/server-version.ts';
import { parseVersion } from '../../../util/version.ts';
import { judgePlan, type VersionRule, type VersionStage } from '../../../versions/plan-rules.ts';
import type { ProgressParts } from './progress.ts';

const ALLOW = 'allowedVersionRules';

export interface MachineVersionVerdict {
  /** The version rule that is broken, and how to allow the version; undefined if no rule is broken. */
  readonly problem: string | undefined;
  /** The Nodes that could not be checked, and why; undefined if all were checked. This text is shown to people and blocks no update. */
  readonly unchecked: string | undefined;
}

/**
 * Checks the version of the stage. Ignores the version rules that the settings switch off. Rejects if the API server of
 * the Nodes does not answer.
 */
export async function judgeMachines(
  { workload, abort }: Pick<ProgressParts, 'workload' | 'abort'>,
  stage: Omit<VersionStage, 'forced'>,
  settings: Settings | null | undefined,
): Promise<MachineVersionVerdict> {
  const version = await readServerVersion(workload, { abort });
  if (!parseVersion(version))
    throw new Error('the API server of the Nodes does not report its version at /version');
  const allow = new Set(
    (settings?.[ALLOW]?.split(',').map((rule) => rule.trim()) ?? []) as VersionRule[],
  );
  const { problems, unchecked } = judgePlan(
    [{ ...stage, forced: false }],
    [{ name: 'the cluster', version }],
    allow,
    () => '',
  );
  const [broken] = problems;
  return {
    problem:
      broken && `${broken.message}; to allow it, add the name of the rule to the setting ${ALLOW}`,
    unchecked:
      unchecked.length === 0
        ? undefined
        : `the version rules were not checked: ${unchecked.join('; ')}`,
  };
}
