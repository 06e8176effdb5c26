/** Judges the version that Machines are to get: Cluster API checks versions only before it creates Machines. */
import type { Settings } from '../../api/capi/hooks.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import { parseVersion } from '../../util/version.ts';
import { judgePlan, type VersionRule, type VersionStage } from '../../versions/plan-rules.ts';
import type { ProgressParts } from './progress.ts';

const ALLOW = 'allowedVersionRules';

/** Which rule is broken, and how to lift it; undefined if none is. Rejects if the API server does not answer. */
export async function versionProblem(
  { workload, abort }: Pick<ProgressParts, 'workload' | 'abort'>,
  stage: Omit<VersionStage, 'forced'>,
  settings: Settings | null | undefined,
): Promise<string | undefined> {
  const about = parseJson((await workload.raw('/version', { abort })).body);
  const version = isRecord(about) ? String(about['gitVersion']) : '';
  if (!parseVersion(version))
    throw new Error('the API server of the Nodes does not tell its version at /version');
  const allow = new Set((settings?.[ALLOW]?.split(/\s*,\s*/) ?? []) as VersionRule[]);
  const [problem] = judgePlan(
    [{ ...stage, forced: false }],
    [{ name: 'the cluster', version }],
    allow,
    () => '',
  ).problems;
  return problem && `${problem.message}; the setting ${ALLOW} lifts rules by their names`;
}
