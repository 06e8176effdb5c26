/** Owns which versions of etcd may follow each other; every member counts. */
import { parseVersion } from '../util/version.ts';
import type { Finding, VersionFacts } from './version-facts.ts';

/** Before it, a member may come up in 3.6 as the learner that it once was. */
const MEMBERS_FOR_36 = 20;
/** Before it, removed members may reappear in 3.6. */
const ADVISED_FOR_36 = 26;

/** What kubeadm of 1.34 and later brings; members on their way there are all that the rules have anything to say of. */
const ETCD_36 = { from: 34, version: '3.6.4' } as const;

/** Undefined where kubeadm runs no etcd, or brings none with a later minor version. */
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
