/** Implements `refit ready`, which says before an upgrade what would break. It writes nothing. */

import { loadChosenCluster } from '../../kube/config/kubeconfig.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { type Accepted, countOf, type ReadyReport } from '../../ready/finding.ts';
import { type LoadRights, rightsCheck } from '../../ready/rights.ts';
import { EXIT, RefitError } from '../../util/errors.ts';
import type { DialectModule } from '../contract/dialect-module.ts';
import type { CommandParts } from '../contract/object-commands.ts';
import type { ReadyTarget, ReadyTargetFlags, ReadyTargetWay } from '../contract/ready-target.ts';
import { asIfApplied, loadPolicies } from '../status/load.ts';
import { readAccepted } from './accept-flag.ts';
import { readFileTarget } from './file-target.ts';
import { readyReporter } from './ready-report.ts';
import { renderReady } from './render.ts';
import { readTargetVersion } from './target-version.ts';

export interface ReadyFlags extends ReadyTargetFlags {
  readonly accept?: readonly string[];
  readonly strict?: boolean;
  readonly helmReleases?: boolean;
}

export interface ReadyParts extends CommandParts {
  readonly modules: readonly Pick<DialectModule<string>, 'view' | 'readiness' | 'readyTarget'>[];
  /** The rights that the components of Refit need. */
  readonly rights: LoadRights;
}

/** Prints what was found. Resolves with 1 if there is a blocker, or with `--strict` if something is unknown. */
export async function showReadiness(flags: ReadyFlags, parts: ReadyParts): Promise<number> {
  const accepted = readAccepted(flags.accept ?? []);
  return await withTarget(flags, parts, async (target) => {
    const report = await reportOn(target, accepted, flags, parts);
    const { output } = parts;
    output.write(
      flags.output === 'json'
        ? `${JSON.stringify(report, undefined, 2)}\n`
        : renderReady(report, output),
    );
    const isBlocked = countOf(report, 'blocker') > 0;
    const isUnknown = flags.strict === true && countOf(report, 'unknown') > 0;
    return isBlocked || isUnknown ? EXIT.failed : EXIT.ok;
  });
}

/** Resolves with what the checks find in the cluster of the target. */
export async function reportOn(
  target: ReadyTarget,
  accepted: Accepted,
  flags: Pick<ReadyFlags, 'apiPort' | 'helmReleases' | ReadyTargetWay['flag']>,
  { abort, clock, modules, rights }: Omit<ReadyParts, 'output'>,
): Promise<ReadyReport> {
  const { to, config } = target;
  using client = createClient(config, { userAgent: 'refit-ready' });
  const policies = asIfApplied(await loadPolicies({ client, abort }), target.policies);
  const dialects = await Promise.all(
    modules.map(async (each) =>
      each.readyTarget !== undefined && flags[each.readyTarget.flag] !== undefined
        ? (target.readiness ?? (await each.readiness()))
        : await each.readiness(),
    ),
  );
  const groundChecks = [rightsCheck(rights), ...target.groundChecks];
  const { apiPort, helmReleases: readsHelmReleases } = flags;
  const of = { config, client, policies, dialects, groundChecks };
  const parts = { ...of, apiPort, readsHelmReleases, clock, abort };
  return await readyReporter(parts, accepted)(to);
}

const ONE_TARGET =
  'one of these must say what to look at: --to VERSION, -f FILE, -m MANIFEST, or --cluster NAME with --to VERSION';

/** Runs `work` with the cluster and the version that the flags name. Throws REFIT_USAGE if they name none, or several. */
async function withTarget(
  flags: ReadyFlags,
  parts: ReadyParts,
  work: (target: ReadyTarget) => Promise<number>,
): Promise<number> {
  const { to, file, manifest, cluster, namespace } = flags;
  const named = [file, manifest, cluster ?? to].filter((each) => each !== undefined);
  if (named.length !== 1 || (to !== undefined && (file ?? manifest) !== undefined))
    throw new RefitError('REFIT_USAGE', ONE_TARGET);
  if (namespace !== undefined && cluster === undefined)
    throw new RefitError('REFIT_USAGE', '-n is the namespace of a Cluster, so it needs --cluster');
  const way = parts.modules
    .flatMap(({ readyTarget }) => readyTarget ?? [])
    .find(({ flag }) => flags[flag] !== undefined);
  if (way !== undefined) return await (await way.load())(flags, parts, work);
  const { clock, modules } = parts;
  const found =
    file === undefined
      ? { to: readTargetVersion(to ?? ''), policies: [] }
      : await readFileTarget(file, modules, clock.now());
  const config = await loadChosenCluster(flags);
  return await work({ ...found, config, readiness: undefined, groundChecks: [] });
}
