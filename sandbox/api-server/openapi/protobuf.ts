/**
 * The OpenAPI document of version 2 as protobuf
 * (https://github.com/google/gnostic/blob/main/openapiv2/OpenAPIv2.proto), without paths and schemas. kubectl asks for
 * this form only before it reports that the server does not have a kind. kubectl validates nothing in that case,
 * because no document describes the kind. For the kinds of this server, kubectl reads version 3.
 */

/**
 * The media types with which clients request this form: the media type of client-go, and the media type of the answer.
 */
const ASKED = [
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
  'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
];

export const PROTOBUF_CONTENT_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** Numbers of fields in the messages `Document` and `Info`. */
const DOCUMENT = { swagger: 1, info: 2 };
const INFO = { title: 1, version: 2 };

/** Returns true if the client asks for protobuf before any other form. */
export function prefersProtobuf(accept: string): boolean {
  const [first = ''] = accept.split(/[,;]/);
  return ASKED.includes(first.trim());
}

export function emptyDocument({ title, version }: Readonly<Record<'title' | 'version', string>>) {
  const info = field(INFO.title, title) + field(INFO.version, version);
  return field(DOCUMENT.swagger, '2.0') + field(DOCUMENT.info, info);
}

/** The wire type of texts and messages: their length comes before them. */
const WITH_LENGTH = 2;
/** A length below this limit is encoded in one byte. */
const LONGEST = 128;

/** Encodes a field with an ASCII text, or with a message. */
function field(number: number, content: string): string {
  if (content.length >= LONGEST) throw new Error(`too long for one byte of length: ${content}`);
  return String.fromCharCode((number << 3) | WITH_LENGTH, content.length) + content;
}
