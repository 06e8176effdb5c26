/** Finds static pods of a control-plane host whose version cannot be read. */
import { type Finding, force, hard } from '../../../versions/findings.ts';
import type { HostFacts } from '../host/probe.ts';
import { STATIC_PODS } from '../host/verify.ts';

/**
 * Returns findings about static pods whose version is unknown, because their image has no version in its tag or their manifest is absent.
 */
export function imageFindings({
  host,
  staticPods,
  unreadImages = {},
  missing,
}: HostFacts): Finding[] {
  if (host.role !== 'controlPlane') return [];
  const unread = STATIC_PODS.flatMap((name) => unreadImages[name] ?? []);
  const absent = STATIC_PODS.filter(
    (name) =>
      !staticPods[name] && !unreadImages[name] && !missing.some((each) => each.name === name),
  );
  return [
    ...unread.map((image) =>
      force('F11', `${host.name}: the image ${image} has no version in its tag; give it one`),
    ),
    ...(absent.length === 0
      ? []
      : [
          hard(
            'F11',
            `${host.name}: found no static pod manifest with a version for ${absent.join(', ')}`,
            'restore it in /etc/kubernetes/manifests on the host',
          ),
        ]),
  ];
}
