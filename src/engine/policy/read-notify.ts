/** Reads `spec.notify` of an UpgradePolicy. */
import { WANTED_ADDRESS } from '../../api/refit/notify-rules.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import type { Receiver } from '../../notify/receivers.ts';
import { defined } from '../../util/json.ts';

type NotifySpec = NonNullable<UpgradePolicySpec['notify']>;

/**
 * Returns the receivers. Calls `complain` for each name that two receivers have, and for each receiver without a complete address or with a
 * key that its type does not have.
 */
export function receiversIn(
  spec: NotifySpec,
  complain: (field: string, wanted: string, found: unknown) => void,
): Receiver[] {
  const names = new Set<string>();
  return spec.flatMap((each, index): Receiver[] => {
    const at = `notify[${index}]`;
    const { name, type, signingKeyRef } = each;
    if (names.has(name)) complain(`${at}.name`, 'a name that no other receiver has', name);
    names.add(name);
    if (type !== 'Webhook' && signingKeyRef !== undefined)
      complain(`${at}.type`, 'Webhook, the only type with signingKeyRef', type);
    const receiver = receiverOf(each);
    if (receiver !== undefined) return [receiver];
    complain(at, `complete: it ${WANTED_ADDRESS}`, Object.keys(each));
    return [];
  });
}

/** Returns the receiver; undefined if its address is not complete, or has a part that its type does not have. */
function receiverOf(spec: NotifySpec[number]): Receiver | undefined {
  const { name, type, events, url, secretRef, room, email } = spec;
  if (type === 'Email') {
    if ((url ?? secretRef ?? room) !== undefined || email === undefined) return undefined;
    const { tls, ...rest } = email;
    return { name, type, events, ...rest, isPlain: tls === 'None' };
  }
  if (email !== undefined) return undefined;
  if (type === 'Matrix') {
    if (url === undefined || room === undefined || secretRef === undefined) return undefined;
    return { name, type, events, server: url, room, token: secretRef };
  }
  if (room !== undefined) return undefined;
  const signed = defined({ signingKey: spec.signingKeyRef });
  if (url !== undefined && secretRef === undefined)
    return { name, type, events, address: { url }, ...signed };
  if (secretRef !== undefined && url === undefined)
    return { name, type, events, address: { secret: secretRef }, ...signed };
  return undefined;
}
