/** Opens the cluster of a manifest for `refit ready -m`, and asks its hosts over SSH. */
import type { WithReadyTarget } from '../../../cli/contract/ready-target.ts';
import type { Check } from '../../../ready/context.ts';
import { findingByRule } from '../../../ready/finding.ts';
import { RefitError } from '../../../util/errors.ts';
import type { RuleName } from '../../../versions/findings.ts';
import { assessHosts } from '../plan/preflight.ts';
import { kubeadmReadiness } from '../plan/readiness.ts';
import { inSession, type KubeadmSession, probeAll, surveyCluster } from './upgrade-session.ts';

/** The rules that other checks of `refit ready` judge, too, from the same facts. */
const OF_OTHER_CHECKS: ReadonlySet<RuleName> = new Set([
  'webhook',
  'drain',
  'F7',
  'R2',
  'R3',
  'R12',
  'R14',
]);

export const withManifest: WithReadyTarget = async (flags, { abort }, work) => {
  const { manifest, output } = flags;
  if (manifest === undefined) throw new RefitError('REFIT_USAGE', '-m must name a manifest');
  return await inSession(
    { ...flags, manifest, output },
    abort,
    async (session) =>
      await work({
        to: session.manifest.version,
        config: session.config,
        readiness: {
          ...kubeadmReadiness,
          // The preflight reads the version of cgroups on each host.
          cgroupsTold: async () =>
            await Promise.resolve(new Set(session.manifest.hosts.map(({ name }) => name))),
        },
        groundChecks: [hostsCheck(session)],
        policies: [],
      }),
  );
};

/** Makes the preflight of `refit kubeadm plan`. */
function hostsCheck(session: KubeadmSession): Check {
  return async () => {
    const hosts = await probeAll(session);
    const survey = await surveyCluster(session, hosts);
    // The check of settings reads the ConfigMaps itself, so that only what the files of the hosts say is left.
    const { findings } = assessHosts({ ...survey, configured: [] });
    const own = findings.filter(({ rule }) => !OF_OTHER_CHECKS.has(rule));
    if (own.length > 0) return own.map(findingByRule);
    return [{ state: 'ok', message: `nothing prevents an upgrade on ${hosts.length} hosts` }];
  };
}
