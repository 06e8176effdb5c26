/** Reads the desired version from a call of UpdateMachine. */
import type { UpdateMachineRequest } from '../../../api/capi/hooks.ts';
import { isRecord } from '../../../util/json.ts';

/** Returns the version of the desired Machine; undefined if the Machine has no version. */
export function versionIn({
  spec,
}: UpdateMachineRequest['desired']['machine']): string | undefined {
  const version = isRecord(spec) ? spec['version'] : undefined;
  return typeof version === 'string' ? version : undefined;
}
