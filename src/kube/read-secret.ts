/** Reads the values of a Secret of the user. Its errors name the Secret. */
import { ownMember } from '../util/own-member.ts';
import type { KubeClient } from './client.ts';
import { secrets } from './resources.ts';
import { isForbidden, isNotFound } from './status-error.ts';

/**
 * The Secret does not exist, or this process may not read it. The message says which of these is the case, and contains
 * no value of the Secret.
 */
export class SecretUnavailable extends Error {
  override readonly name = 'SecretUnavailable';
}

interface Named {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
}

/** Resolves with a function that returns the value of a key; it is empty if the Secret lacks the key. */
export async function readSecret(
  { client, namespace, name }: Named,
  abort: AbortSignal,
): Promise<(key: string) => Buffer> {
  const title = `Secret ${namespace}/${name}`;
  const { data = {} } = await client
    .get(secrets, name, { namespace, abort })
    .catch((error: unknown) => {
      if (isNotFound(error)) throw new SecretUnavailable(`${title} does not exist`);
      if (isForbidden(error))
        throw new SecretUnavailable(`the leader has no right to get ${title}`);
      throw error;
    });
  return (key) => Buffer.from(ownMember(data, key) ?? '', 'base64');
}
