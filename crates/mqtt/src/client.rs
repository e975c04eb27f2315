//! The client.

use mqtt5::MqttClient;

use crate::{BoxFuture, ConnectOptions, ConnectionEvent, Message, MqttError, SubscribeOptions};

/// A client of an MQTT broker. Disconnect it: a client that is only dropped leaves its tasks and its socket behind.
pub struct Client(MqttClient);

impl Client {
    /// Returns a client that is not connected.
    #[must_use]
    pub fn new(options: ConnectOptions) -> Self {
        Self(MqttClient::with_options(options))
    }

    /// Calls `callback` with each change of the connection.
    ///
    /// # Errors
    /// Returns the errors of `mqtt5::MqttClient::on_connection_event`.
    pub fn on_connection_event(
        &self,
        callback: impl Fn(ConnectionEvent) + Send + Sync + 'static,
    ) -> BoxFuture<'_, Result<(), MqttError>> {
        let callback: Box<dyn Fn(ConnectionEvent) + Send + Sync> = Box::new(callback);
        self.add_callback(callback)
    }

    fn add_callback(
        &self,
        callback: Box<dyn Fn(ConnectionEvent) + Send + Sync>,
    ) -> BoxFuture<'_, Result<(), MqttError>> {
        Box::pin(self.0.on_connection_event(callback))
    }

    /// Connects to a broker, for example `mqtt://127.0.0.1:1883`.
    ///
    /// # Errors
    /// Returns an error if the broker cannot be reached or rejects the client.
    pub fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<(), MqttError>> {
        Box::pin(self.0.connect(address))
    }

    /// Subscribes to a filter and calls `callback` with each message.
    ///
    /// # Errors
    /// Returns an error if the connection fails or the broker rejects the subscription.
    pub fn subscribe(
        &self,
        filter: &str,
        options: SubscribeOptions,
        callback: impl Fn(Message) + Send + Sync + 'static,
    ) -> BoxFuture<'_, Result<(), MqttError>> {
        self.add_subscription(filter.to_owned(), options, Box::new(callback))
    }

    fn add_subscription(
        &self,
        filter: String,
        options: SubscribeOptions,
        callback: Box<dyn Fn(Message) + Send + Sync>,
    ) -> BoxFuture<'_, Result<(), MqttError>> {
        Box::pin(async move {
            self.0.subscribe_with_options(filter, options, callback).await?;
            Ok(())
        })
    }

    /// Publishes a message with QoS 0. Returns when it is written to the connection's queue.
    ///
    /// # Errors
    /// Returns an error if the client is not connected.
    pub fn publish_qos0<'a>(&'a self, topic: &'a str, payload: Vec<u8>) -> BoxFuture<'a, Result<(), MqttError>> {
        Box::pin(async move {
            self.0.publish_qos0(topic, payload).await?;
            Ok(())
        })
    }

    /// Publishes a message with QoS 1. Returns when the broker has acknowledged it.
    ///
    /// # Errors
    /// Returns an error if the client is not connected or the broker does not acknowledge the message.
    pub fn publish_qos1<'a>(&'a self, topic: &'a str, payload: Vec<u8>) -> BoxFuture<'a, Result<(), MqttError>> {
        Box::pin(async move {
            self.0.publish_qos1(topic, payload).await?;
            Ok(())
        })
    }

    /// Disconnects from the broker.
    ///
    /// # Errors
    /// Returns an error if the client is not connected.
    pub fn disconnect(&self) -> BoxFuture<'_, Result<(), MqttError>> {
        Box::pin(self.0.disconnect())
    }
}
