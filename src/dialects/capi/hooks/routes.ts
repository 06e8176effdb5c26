/** The paths of the hooks, and the discovery response. */
import { HOOK_GROUP, type HookName, type HookResponse } from '../../../api/capi/hooks.ts';

/** With the caller's timeout, which may be 30 seconds at most. */
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

/** An ExtensionConfig may name one, where other extensions share the address. */
const PREFIX = /^(?:\/[\w-]+)+(?=\/hooks\.)/;

/** The hook, or an HTTP status. Paths are case-sensitive. */
export function routeOf(method: string | undefined, path: string): HookName | 404 | 405 {
  const hook = ROUTES.get(path.replace(PREFIX, ''));
  if (hook === undefined) return 404;
  return method === 'POST' ? hook : 405;
}

/** With the failure policy `Ignore`, a lost answer of UpdateMachine would count as done. */
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
