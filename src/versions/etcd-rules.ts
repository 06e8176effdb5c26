/** The rules for etcd upgrades; they apply to every member. */
import { parseVersion } from '../util/version.ts';
import type { Finding, VersionFacts } from './version-facts.ts';

/** With an older patch, a member may become a learner again in 3.6. */
const MEMBERS_FOR_36 = 20;
/** With an older patch, removed members may reappear in 3.6. */
const ADVISED_FOR_36 = 26;

/** kubeadm 1.34 and later brings etcd 3.6; the rules are about the way there. */
const ETCD_36 = { from: 34, version: '3.6.4' } as const;

/** Undefined if kubeadm runs no etcd, or brings no new minor version of it. */
export function etcdFacts(members: readonly string[], target: string): VersionFacts['etcd'] {
  const minor = parseVersion(target)?.minor ?? 0;
  return members.length > 0 && minor >= ETCD_36.from ? { members, target: ETCD_36.version } : undefined;
}

export function etcdFindings(etcd: VersionFacts['etcd']): Finding[] {
  if (!etcd) return [];
  const target = parseVersion(etcd.target);
  return etcd.members.flatMap((member): Finding[] => {
    const now = parseVersion(member);
    const found = (severity: Finding['severity'], why: string): Finding[] => [
      { rule: 'etcd', severity, message: `etcd ${member} to ${etcd.target}: ${why}` },
    ];
    if (!now || !target) return found('hard', 'a version cannot be read');
    if (target.minor < now.minor) return found('hard', 'the storage format is not lowered');
    if (target.minor - now.minor > 1) return found('hard', 'one minor version at a time');
    if (target.minor !== 6 || now.minor !== 5 || now.patch >= ADVISED_FOR_36) return [];
    if (now.patch < MEMBERS_FOR_36) return found('hard', `every member must be at 3.5.${MEMBERS_FOR_36} or later`);
    return found('warn', `3.5.${ADVISED_FOR_36} or later is advised`);
  });
}
