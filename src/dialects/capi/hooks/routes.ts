/** The paths of the hooks, and the discovery response. */
import { HOOK_GROUP, type HookName, type HookResponse } from '../../../api/capi/hooks.ts';

/** The hooks with their timeouts in seconds. Cluster API allows 30 seconds at most. */
export const HANDLERS = [
  { name: 'can-update-machine', hook: 'CanUpdateMachine', timeoutSeconds: 10 },
  { name: 'can-update-machineset', hook: 'CanUpdateMachineSet', timeoutSeconds: 10 },
  { name: 'update-machine', hook: 'UpdateMachine', timeoutSeconds: 20 },
] as const;

const ROUTES = new Map<string, HookName>([
  [`/${HOOK_GROUP}/discovery`, 'Discovery'],
  ...HANDLERS.map(
    ({ name, hook }) => [`/${HOOK_GROUP}/${hook.toLowerCase()}/${name}`, hook] as const,
  ),
]);

/** Matches the path prefix that an ExtensionConfig may add if other extensions share the address. */
const PREFIX = /^(?:\/[\w-]+)+(?=\/hooks\.)/;

/** Returns the name of the hook, or the HTTP status of a refusal. Paths are case-sensitive. */
export function routeOf(method: string | undefined, path: string): HookName | 404 | 405 {
  const hook = ROUTES.get(path.replace(PREFIX, ''));
  if (hook === undefined) return 404;
  return method === 'POST' ? hook : 405;
}

/**
 * Returns the discovery response. The failure policy must be `Fail`. With `Ignore`, Cluster API would treat the update
 * as done if the answer of UpdateMachine is lost.
 */
export function discovery(): HookResponse & { readonly handlers: readonly object[] } {
  return {
    apiVersion: HOOK_GROUP,
    kind: 'DiscoveryResponse',
    status: 'Success',
    handlers: HANDLERS.map(({ name, hook, timeoutSeconds }) => ({
      name,
      requestHook: { apiVersion: HOOK_GROUP, hook },
      timeoutSeconds,
      failurePolicy: 'Fail',
    })),
  };
}
