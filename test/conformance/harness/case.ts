/**
 * Defines a conformance case. It contains only data, so that the same requests can go to any server.
 * Texts in paths and bodies may contain `$ns` (the namespace of this case), `$id` (a prefix for names that belong to no
 * namespace), `$group` (the API group of the definition of this file), and `{step.path.to.member}`: the value of this
 * member in the answer to an earlier step that was named with `as`.
 */

export interface RequestStep {
  readonly do: 'request';
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  /** Later steps can refer to the answer by this name. */
  readonly as?: string;
  /**
   * Compares everything except the message. Some messages quote text that always differs between two servers, such as a
   * whole object or the source code of the real server.
   */
  readonly anyMessage?: boolean;
  /** Compares `metadata.managedFields` as well. Steps without this option ignore that field. */
  readonly managedFields?: boolean;
}

/** Opens a watch with the name `as`. The steps `events` and `end` compare what the watch receives. */
export interface WatchStep {
  readonly do: 'watch';
  readonly path: string;
  readonly as: string;
  readonly accept?: string;
}

/**
 * Waits for `count` events of a watch, and compares all events up to the last counted event. Bookmarks without
 * annotations do not count.
 */
export interface EventsStep {
  readonly do: 'events';
  readonly of: string;
  readonly count: number;
}

/**
 * Waits until the server ends the watch, and compares everything that the watch has received since the last comparison.
 */
export interface EndStep {
  readonly do: 'end';
  readonly of: string;
}

/**
 * Repeats a GET until `member` of the answer equals `equals`. Only the duration of this step may differ between the
 * servers.
 */
export interface UntilStep {
  readonly do: 'until';
  readonly path: string;
  readonly member: string;
  readonly equals: unknown;
}

export type Step = RequestStep | WatchStep | EventsStep | EndStep | UntilStep;

type More = Partial<
  Pick<RequestStep, 'as' | 'anyMessage' | 'contentType' | 'accept' | 'managedFields'>
>;

export const get = (path: string, more: More = {}): RequestStep => ({
  do: 'request',
  method: 'GET',
  path,
  ...more,
});

export const post = (path: string, body: unknown, more: More = {}): RequestStep => ({
  do: 'request',
  method: 'POST',
  path,
  body,
  ...more,
});

export const put = (path: string, body: unknown, more: More = {}): RequestStep => ({
  do: 'request',
  method: 'PUT',
  path,
  body,
  ...more,
});

export const del = (path: string, body?: unknown, more: More = {}): RequestStep => ({
  do: 'request',
  method: 'DELETE',
  path,
  ...(body === undefined ? {} : { body }),
  ...more,
});

const patchAs =
  (contentType: string) =>
  (path: string, body: unknown, more: More = {}): RequestStep => ({
    do: 'request',
    method: 'PATCH',
    path,
    body,
    contentType,
    ...more,
  });

export const merge = patchAs('application/merge-patch+json');
export const jsonPatch = patchAs('application/json-patch+json');
export const strategic = patchAs('application/strategic-merge-patch+json');
export const apply = patchAs('application/apply-patch+yaml');

export const watch = (
  as: string,
  path: string,
  more: Pick<WatchStep, 'accept'> = {},
): WatchStep => ({ do: 'watch', as, path, ...more });
export const events = (of: string, count: number): EventsStep => ({ do: 'events', of, count });
export const end = (of: string): EndStep => ({ do: 'end', of });
export const until = (path: string, member: string, equals: unknown): UntilStep => ({
  do: 'until',
  path,
  member,
  equals,
});
