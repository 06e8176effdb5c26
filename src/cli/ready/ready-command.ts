/** Implements `refit ready`, which says before an upgrade what would break. It writes nothing. */

import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { homeOf } from '../../composition/own-namespaces.ts';
import { readPolicy } from '../../engine/policy/read-policy.ts';
import { loadChosenCluster } from '../../kube/config/kubeconfig.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { answer, unknown } from '../../ready/asking.ts';
import { clusterContext } from '../../ready/cluster-context.ts';
import type { PolicyCheck } from '../../ready/context.ts';
import { type Accepted, CHECK_NAMES, type CheckName, countOf } from '../../ready/finding.ts';
import { askReadiness } from '../../ready/readiness.ts';
import { type ComponentRights, rightsCheck } from '../../ready/rights.ts';
import { EXIT, RefitError } from '../../util/errors.ts';
import { parseVersion } from '../../util/version.ts';
import type { DialectModule } from '../contract/dialect-module.ts';
import type { CommandParts } from '../contract/object-commands.ts';
import type { ConnectionFlags } from '../options.ts';
import { loadPolicies } from '../status/load.ts';
import { policyGround } from './ground/policies.ts';
import { renderReady } from './render.ts';

export interface ReadyFlags extends ConnectionFlags {
  readonly to: string;
  readonly accept?: readonly string[];
  readonly strict?: boolean;
  readonly output: 'text' | 'json';
}

export interface ReadyParts extends CommandParts {
  readonly modules: readonly Pick<DialectModule<string>, 'readiness'>[];
  /** The rights that the components of Refit need. */
  readonly rights: readonly ComponentRights[];
}

/** Prints what was found. Resolves with 1 if there is a blocker, or with `--strict` if something is unknown. */
export async function showReadiness(flags: ReadyFlags, parts: ReadyParts): Promise<number> {
  const to = readTarget(flags.to);
  const accepted = readAccepted(flags.accept ?? []);
  const { abort, clock, output, modules, rights } = parts;
  const config = await loadChosenCluster(flags);
  using client = createClient(config, { userAgent: 'refit-ready' });
  const policies = await loadPolicies({ client, abort });
  const { unseen } = policies;
  const known = unseen === undefined ? answer(policies.list()) : unknown(unseen);
  const context = clusterContext({
    config,
    client,
    clock,
    abort,
    to,
    namespace: homeOf(config),
    environment: process.env,
    apiPort: flags.apiPort,
    dialects: await Promise.all(modules.map(async (each) => await each.readiness())),
    policyChecks: known.kind === 'unknown' ? known : answer(known.value.flatMap(checksOf)),
    groundChecks: [policyGround({ policies: known, client, clock, abort }), rightsCheck(rights)],
  });
  const report = await askReadiness(context, accepted);
  output.write(
    flags.output === 'json'
      ? `${JSON.stringify(report, undefined, 2)}\n`
      : renderReady(report, output),
  );
  const isBlocked = countOf(report, 'blocker') > 0;
  const isUnknown = flags.strict === true && countOf(report, 'unknown') > 0;
  return isBlocked || isUnknown ? EXIT.failed : EXIT.ok;
}

function checksOf(policy: UpgradePolicy): PolicyCheck[] {
  const { health } = readPolicy(policy);
  return (health?.checks ?? []).map((check) => ({ policy: policy.metadata.name, check }));
}

/** Returns the version with its `v`. A minor version such as `1.37` stands for its first release. */
function readTarget(text: string): string {
  const version = `v${text.replace(/^v/, '')}`;
  const whole = /^v\d+\.\d+$/.test(version) ? `${version}.0` : version;
  if (parseVersion(whole) !== undefined) return whole;
  throw new RefitError(
    'REFIT_USAGE',
    `--to must be a version such as v1.37 or v1.37.2+k0s.0, found "${text}"`,
  );
}

function readAccepted(texts: readonly string[]): Accepted {
  return new Map(
    texts.map((text) => {
      const [, name = '', reason = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
      const check = CHECK_NAMES.find((each) => each === name);
      if (check !== undefined && reason.trim() !== '') return [check, reason.trim()] as const;
      throw new RefitError(
        'REFIT_USAGE',
        `--accept must be CHECK=REASON with one of the checks ${CHECK_NAMES.join(', ')}, and a reason, found "${text}"`,
      );
    }),
  ) satisfies ReadonlyMap<CheckName, string>;
}
