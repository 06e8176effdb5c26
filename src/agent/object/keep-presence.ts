/** Keeps what the agent says of itself on its object, so that people and policies see whose agent a node has. */
import type { KubeClient } from '../../kube/client.ts';
import type { Resource } from '../../kube/resources.ts';
import { type AgentPresence, encodePresence } from '../../signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../signal/names.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import { keepDoing, type SignalObject } from './signal-object.ts';

export interface PresenceParts extends Tools {
  readonly client: Pick<KubeClient, 'patch'>;
  readonly resource: Resource;
  readonly object: SignalObject;
  readonly presence: () => Promise<AgentPresence>;
}

/** Polled, because how k0s was started is not watched. */
const POLL_MS = 60_000;
const RETRY = { base: 1_000, cap: 600_000 };

/** Works until `stop` aborts; never rejects, because an agent works without it. */
export async function keepPresence(parts: PresenceParts, stop: AbortSignal): Promise<void> {
  const { client, resource, object, presence, log } = parts;
  const announce = async (): Promise<number> => {
    const { newest } = object;
    const text = encodePresence(await presence());
    if (newest !== undefined && newest.metadata.annotations?.[AGENT_ANNOTATION] !== text) {
      const patch = { metadata: { annotations: { [AGENT_ANNOTATION]: text } } };
      await client.patch(resource, newest.metadata.name, patch, { type: 'merge', abort: stop });
    }
    return POLL_MS;
  };
  const tell = (error: unknown, pauseMs: number): void =>
    log.warn('cannot announce the agent on its object', { reason: messageOf(error), pauseMs });
  await keepDoing(announce, tell, RETRY, parts, stop);
}
