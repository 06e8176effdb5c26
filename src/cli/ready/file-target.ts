/** Reads the target of `refit ready -f` from files with plans. */
import type { ReadObject } from '../../api/read-object.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import type { World } from '../../engine/contract/world.ts';
import { newestOf, newestVersionOf } from '../../engine/model/newest-version.ts';
import type { Rollout } from '../../engine/model/rollout.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import type { SessionDialect } from '../contract/session-dialect.ts';
import { readInputs } from '../input-files.ts';
import { type PlanFiles, planFilesIn } from '../preview/plan-files.ts';

const MANIFEST_HINT = '`refit ready -m` takes a manifest of hosts';

/** The target that files name. */
export interface FileTarget extends Pick<PlanFiles, 'policies'> {
  readonly to: string;
}

/**
 * Resolves with the newest version of the plans in the files, and with their policies. Throws REFIT_FILE if a plan names no
 * version.
 */
export async function readFileTarget(
  paths: readonly string[],
  modules: readonly Pick<SessionDialect, 'view'>[],
  now: number,
): Promise<FileTarget> {
  const dialects = await Promise.all(modules.map(async (each) => await each.view()));
  const { plans, policies } = planFilesIn(await readInputs(paths), { manifestHint: MANIFEST_HINT });
  const found = plans.map((plan) => ({ plan, rollout: rolloutIn(plan, dialects, now) }));
  const problems = found.flatMap(({ plan: { place }, rollout }) => {
    if (rollout !== undefined && newestVersionOf(rollout) !== undefined) return [];
    const written = [...new Set(rollout?.stages.map(({ version }) => version))].filter(Boolean);
    const what =
      written.length === 0
        ? 'names no version'
        : `names a version that does not say what it brings: found "${listed(written)}"`;
    return [`${place}: the plan ${what}; write the version with --to in place of -f`];
  });
  if (problems.length > 0) throw new RefitError('REFIT_FILE', '', { problems });
  const versions = found.flatMap(({ rollout }) => (rollout && newestVersionOf(rollout)) ?? []);
  const to = newestOf(versions) ?? '';
  return { to, policies };
}

/** A cluster without objects. The versions of a plan do not depend on its targets. */
const NOTHING: World = { list: () => [], get: () => undefined };

function rolloutIn(
  { object, kind }: ReadObject,
  dialects: readonly Dialect[],
  now: number,
): Rollout | undefined {
  const dialect = dialects.find(({ plans }) => plans === kind.resource);
  return dialect?.resolve(object, NOTHING, now);
}
