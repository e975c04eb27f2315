//! Calls and responses between nodes and master.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use viaduct_ros::xmlrpc::{Call, DocumentError, Response, Value};

#[test]
fn a_call_of_a_python_node_is_read() {
    // As `xmlrpc.client` of Python 3 writes it.
    let document = "<?xml version='1.0'?>\n<methodCall>\n<methodName>publisherUpdate</methodName>\n<params>\n<param>\n\
                    <value><string>/master</string></value>\n</param>\n<param>\n<value><string>/chatter</string></value>\n\
                    </param>\n<param>\n<value><array><data>\n<value><string>http://127.0.0.1:41237/</string></value>\n\
                    </data></array></value>\n</param>\n</params>\n</methodCall>\n";
    let call = Call::parse(document.as_bytes()).unwrap();
    let uris = Value::from(vec![Value::from("http://127.0.0.1:41237/")]);
    assert_eq!(call.method, "publisherUpdate");
    assert_eq!(call.params, [Value::from("/master"), Value::from("/chatter"), uris]);
}

#[test]
fn a_response_of_a_roscpp_node_is_read() {
    // As the library of roscpp writes it: `i4`, and texts without an element.
    let document = "<?xml version=\"1.0\"?>\r\n<methodResponse><params><param>\r\n\t<value><array><data><value><i4>1</i4></value>\
                    <value>ready on 127.0.0.1:41237</value><value><array><data><value>TCPROS</value><value>127.0.0.1</value>\
                    <value><i4>41237</i4></value></data></array></value></data></array></value>\r\n</param></params></methodResponse>\r\n";
    let Response::Value(value) = Response::parse(document.as_bytes()).unwrap() else { panic!("a fault") };
    let protocol = value.as_array().unwrap()[2].as_array().unwrap();
    assert_eq!((protocol[0].as_str(), protocol[2].as_int()), (Some("TCPROS"), Some(41237)));
}

#[test]
fn a_fault_has_a_number_and_a_text() {
    let fault = Response::Fault { code: 1, message: "<class 'Exception'>:method \"x\" & more".to_owned() };
    assert_eq!(Response::parse(fault.write().as_bytes()), Ok(fault));
}

#[test]
fn references_and_sections_are_texts() {
    let document = "<methodCall><methodName>a</methodName><params><param><value>&lt;&#65;&#x42;<![CDATA[<&>]]></value></param>\
                    </params></methodCall>";
    assert_eq!(Call::parse(document.as_bytes()).unwrap().params, [Value::from("<AB<&>")]);
}

#[test]
fn wrong_documents_are_refused() {
    let parse = |body: &str| {
        Call::parse(format!("<methodCall><methodName>a</methodName>{body}</methodCall>").as_bytes()).unwrap_err()
    };
    let value = |value: &str| parse(&format!("<params><param><value>{value}</value></param></params>"));
    assert_eq!(value("<int>x</int>").to_string(), "`x` is not of the type `int`");
    assert_eq!(value("<base64>aa</base64>").to_string(), "`base64` is not a type of a value");
    assert_eq!(value("<array></array>").to_string(), "the element `data` is missing");
    assert!(matches!(value("&unknown;"), DocumentError::Xml(_)));
    assert!(matches!(parse("</x>"), DocumentError::Xml(_)));
    assert_eq!(Call::parse(b"<methodResponse/>"), Err(DocumentError::Missing("methodCall")));
    assert_eq!(Call::parse(b"<methodCall/>"), Err(DocumentError::Missing("methodName")));
    assert_eq!(Call::parse(b"<!DOCTYPE a [<!ENTITY b \"c\">]><methodCall/>"), Err(DocumentError::DocumentType));
    assert_eq!(Call::parse("<a>".repeat(49).as_bytes()), Err(DocumentError::TooLarge));
    assert_eq!(Call::parse(&vec![b' '; 5 << 20]), Err(DocumentError::TooLong(5 << 20)));
    assert!(Call::parse(b"\xFF").is_err() && Call::parse(b"").is_err() && Call::parse(b"<methodCall>").is_err());
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = "[ -~\u{e4}\u{20ac}]{0,12}";
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::Int),
        any::<bool>().prop_map(Value::Bool),
        (-1e9..1e9).prop_map(Value::Double),
        text.prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            proptest::collection::vec(("[a-z]{1,8}", inner), 0..5).prop_map(Value::Struct),
        ]
    })
}

proptest! {
    #[test]
    fn a_written_call_is_read_as_the_same(params in proptest::collection::vec(any_value(), 0..4), method in "[a-zA-Z.]{1,20}") {
        let call = Call { method, params };
        prop_assert_eq!(Call::parse(call.write().as_bytes()), Ok(call));
    }

    #[test]
    fn a_written_result_is_read_as_the_same(value in any_value()) {
        let response = Response::Value(value);
        prop_assert_eq!(Response::parse(response.write().as_bytes()), Ok(response));
    }

    #[test]
    fn any_octets_are_a_document_or_an_error(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = (Call::parse(&octets), Response::parse(&octets));
    }
}
