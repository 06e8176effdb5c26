/** Reads the values of a Secret of the user. Its errors name the Secret. */
import { ownMember } from '../util/own-member.ts';
import type { KubeClient } from './client.ts';
import { secrets } from './resources.ts';
import { isForbidden, isNotFound } from './status-error.ts';

/**
 * The Secret cannot be read. The message is one of three fixed sentences. So it contains no value of the Secret, and no
 * text from the answer of the API server.
 */
export class SecretUnavailable extends Error {
  override readonly name = 'SecretUnavailable';
  /** True if the Secret does not exist. */
  readonly isMissing: boolean;

  constructor(message: string, isMissing = false) {
    super(message);
    this.isMissing = isMissing;
  }
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
      if (isNotFound(error)) throw new SecretUnavailable(`${title} does not exist`, true);
      if (isForbidden(error))
        throw new SecretUnavailable(`the leader has no right to get ${title}`);
      abort.throwIfAborted();
      throw new SecretUnavailable(`the API server gave no usable answer about ${title}`);
    });
  return (key) => Buffer.from(ownMember(data, key) ?? '', 'base64');
}
