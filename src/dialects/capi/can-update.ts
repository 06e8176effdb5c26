/** Answers CanUpdateMachine and CanUpdateMachineSet: returns the change of the version, which Refit can make, as a patch. */
import { type CanUpdateResponse, HOOK_GROUP, type Patch, type Settings, type Triple } from '../../api/capi/hooks.ts';
import { parseVersion } from '../../util/version.ts';
import { changesBetween, nameOf, type PartChange, type Shape } from './compared-fields.ts';

export interface CanRequest {
  readonly settings?: Settings | null | undefined;
  readonly current: Triple;
  readonly desired: Triple;
}

/** `kind` such as `CanUpdateMachine`. */
export function answerCan(kind: string, shape: Shape, { settings, current, desired }: CanRequest): CanUpdateResponse {
  const head = { apiVersion: HOOK_GROUP, kind: `${kind}Response`, status: 'Success' } as const;
  if (isDisabled(settings))
    return { ...head, message: 'in-place updates are disabled by the setting disableInPlaceUpdates' };
  const changes = changesBetween(shape, current, desired);
  const claimed = changes.find(isOurs);
  const rest = changes.filter((change) => change !== claimed).map(nameOf);
  const message = `covers ${claimed ? nameOf(claimed) : 'nothing'}; leaves ${rest.join(', ') || 'nothing'}`;
  if (!claimed || (rest.length > 0 && settings?.['partial'] === 'deny')) return { ...head, message };
  return { ...head, message, [claimed.part.patch]: patchFor(shape, claimed) };
}

/** A setting of Cluster API's reference extension. */
export function isDisabled(settings: Settings | null | undefined): boolean {
  return settings?.['disableInPlaceUpdates'] === 'true';
}

function isOurs(change: PartChange): boolean {
  return nameOf(change) === 'machine.spec.version' && typeof change.to === 'string' && !!parseVersion(change.to);
}

function patchFor({ root }: Shape, { path, to }: PartChange): Patch {
  const document = [...root, ...path].reduceRight<unknown>((value, key) => ({ [key]: value }), to);
  return { patchType: 'JSONMergePatch', patch: Buffer.from(JSON.stringify(document)).toString('base64') };
}
